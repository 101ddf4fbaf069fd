"""Files of the kinds that people have: written by the exporters of PyTorch, quantized, or by hand.

`case.py` says what a case is, `exporting.py` writes networks of PyTorch; the families stand in
`sequences.py`, `images.py`, `tables.py` and `written.py`.  Weights are of a fixed seed.
"""

from tensorwright_lab.zoo.foreign import images, sequences, tables, written
from tensorwright_lab.zoo.foreign.case import Case

__all__ = ["CASES", "Case"]

CASES: tuple[Case, ...] = (
    *(
        case
        for network in (*sequences.NETWORKS, *images.NETWORKS, *tables.NETWORKS)
        for case in network.cases()
    ),
    *written.cases(),
)
"""All cases; a file is written when `build` is called."""
