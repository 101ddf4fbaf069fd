"""Substitutions of operator graphs. Read `terms.py` first, then `operators.py` and `meaning.py`.

`generate/` enumerates graphs and finds equal ones, `prune/` drops the redundant candidates.
"""
