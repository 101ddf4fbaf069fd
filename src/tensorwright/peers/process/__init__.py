"""A competitor in a process of its own, and what is said to it. Read `protocol.py`."""
