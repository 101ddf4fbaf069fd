"""Plans: the steps of an executable, as plain data. Read `plan.py` first."""
