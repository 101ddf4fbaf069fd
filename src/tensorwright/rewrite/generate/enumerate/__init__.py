"""All operator graphs up to a size, level by level. Read `enumerate.py` first."""
