"""Random small networks made of parts of real networks, on which cost models are trained.

`networks.py` draws one from a seed; each module beside it holds some families. None of them is
taken from a benchmark: sizes, activations, normalisations and orders are drawn.
"""

from tensorwright_lab.zoo.plausible.networks import FAMILIES, JUDGING_FAMILIES, draw_network
