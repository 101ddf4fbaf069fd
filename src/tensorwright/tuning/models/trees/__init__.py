"""Boosted trees: `forest.py` evaluates them, `lightgbm_trees.py` fits them, `boosted.py` is the
model that learns in a session.
"""
