"""The cheapest term of an e-graph, shared subterms counted once. Read `problem.py` first.

`cheapest_trees.py` starts, `local_search.py` improves by steps that `draft.py` counts, and
`alternatives.py` finds others; `contraction.py` leaves out what is free; `serialized.py` reads and
writes the JSON of other tools.  `exact.py` proves: with what `reduction.py` leaves by
`needed_classes.py`, and `simulation.py` of that, in the parts of `decomposition.py`, by the
programs of `integer_program.py` that `conflicts.py` and `derivation_cuts.py` make tight.
"""

from tensorwright.rewriting.extraction.alternatives import cheap_selections
from tensorwright.rewriting.extraction.cheapest_trees import cheapest_trees
from tensorwright.rewriting.extraction.contraction import Contraction, contracted
from tensorwright.rewriting.extraction.exact import ExactExtraction, cheapest_exact
from tensorwright.rewriting.extraction.local_search import LocalSearch, cheapest_dag
from tensorwright.rewriting.extraction.problem import ExtractionProblem, Selection
from tensorwright.rewriting.extraction.serialized import (
    SerializedEGraph,
    egraph_text,
    read_egraph,
    write_egraph,
)

__all__ = [
    "Contraction",
    "ExactExtraction",
    "ExtractionProblem",
    "LocalSearch",
    "Selection",
    "SerializedEGraph",
    "cheap_selections",
    "cheapest_dag",
    "cheapest_exact",
    "cheapest_trees",
    "contracted",
    "egraph_text",
    "read_egraph",
    "write_egraph",
]
