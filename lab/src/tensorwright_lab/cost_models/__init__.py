"""Cost models that are compared with the usual one, and how good one is.

accuracy.py   does a model put the faster of two programs first, and find the fastest?
held_out.py   how much a prior counts, by programs that were held out
losses.py     losses besides that of pairs
tree_gru.py   the program embedding: a recurrent network that goes up the tree of loops;
              `tree_arrays.py` is what it reads, `torch_training.py` fits it
"""

from tensorwright_lab.cost_models.accuracy import Judgement, judge, overall, scores_of, split
from tensorwright_lab.cost_models.tree_arrays import NetworkSettings
from tensorwright_lab.cost_models.tree_gru import read_network
