"""Boosted trees: `tree.py`, `compact_trees.py` and `forest.py` hold them, `tree_walk.py` evaluates
them, `lightgbm_trees.py` fits them, `boosted.py` is the model that learns in a session.
"""
