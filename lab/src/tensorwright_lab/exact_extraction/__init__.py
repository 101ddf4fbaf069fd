"""The cheapest term of an e-graph, with a proof, by which the compiler's searches are judged.

`exact.py` proves.  `reduction.py` and `simulation.py` leave nodes out, what is left is divided into
parts, and `integer_program.py` solves each part;
`conflicts.py` and `derivation_cuts.py` make its programs tight. `serialized.py` reads and writes
the JSON of other tools.
"""

from tensorwright_lab.exact_extraction.exact import cheapest_exact
from tensorwright_lab.exact_extraction.serialized import read_egraph, write_egraph
