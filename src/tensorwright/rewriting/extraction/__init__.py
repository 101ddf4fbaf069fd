"""The cheapest term of an e-graph, shared subterms counted once. Read `problem.py` first.

`cheapest_trees.py` gives the first selection. `local_search.py` improves it step by step on a
`draft.py`, and finds others. `contraction.py` leaves out classes that are free.
"""

from tensorwright.rewriting.extraction.cheapest_trees import cheapest_trees
from tensorwright.rewriting.extraction.contraction import contracted
from tensorwright.rewriting.extraction.local_search import cheap_selections, cheapest_dag
from tensorwright.rewriting.extraction.problem import ExtractionProblem, Selection

__all__ = [
    "ExtractionProblem",
    "Selection",
    "cheap_selections",
    "cheapest_dag",
    "cheapest_trees",
    "contracted",
]
