"""Boosted trees: `forest.py` holds and evaluates them, `lightgbm_trees.py` fits them.

The score of a program is the sum of the trees' values over its statements, so that one model serves
programs of any number of statements, and all operators.
"""
