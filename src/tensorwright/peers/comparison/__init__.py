"""Competitors side by side: the same answers, and how fast, in turns. Read `rotation.py`."""
