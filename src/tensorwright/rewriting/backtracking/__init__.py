"""Backtracking search over graphs, after TASO.  Read `search.py` first.

`draft_graph.py` is a graph that is changed step by step, `moves.py` finds the places where rules
can change it and their gains, `search.py` reads a network and returns the best graphs as
terms.
"""

from tensorwright.rewriting.backtracking.search import BacktrackingLimits, backtrack_network
