"""Plans: what an executable does, as plain data. Read `plan.py` first."""
