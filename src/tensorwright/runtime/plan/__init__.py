"""What an executable does, as plain data: made, checked, written. Read `plan.py` first."""
