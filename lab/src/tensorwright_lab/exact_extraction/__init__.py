"""The cheapest term of an e-graph, proved: what the searches of the compiler are judged by.

`exact.py` proves: with what `reduction.py` leaves by `needed_classes.py`, and `simulation.py` of
that, in the parts of `decomposition.py`, by the programs of `integer_program.py` that
`conflicts.py` and `derivation_cuts.py` make tight. `serialized.py` reads and writes the JSON of
other tools.
"""

from tensorwright_lab.exact_extraction.exact import ExactExtraction, cheapest_exact
from tensorwright_lab.exact_extraction.serialized import (
    SerializedEGraph,
    egraph_text,
    read_egraph,
    write_egraph,
)

__all__ = [
    "ExactExtraction",
    "SerializedEGraph",
    "cheapest_exact",
    "egraph_text",
    "read_egraph",
    "write_egraph",
]
