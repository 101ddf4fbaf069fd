"""Evaluate tensor expressions over any number domain. Read `domain.py`, then `evaluate.py`."""
