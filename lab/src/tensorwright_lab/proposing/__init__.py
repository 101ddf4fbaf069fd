"""A model that proposes schedules where nothing was measured. Read `decisions.py`, then `model.py`.

decisions.py    what can be decided next, as rows that do not depend on the operator
model.py        trees over such rows; drawing by them, which searches start from; a model as data
examples.py     what good schedules on record decided, and trees from that
"""

from tensorwright_lab.proposing.decisions import COLUMNS, DecisionTables, Prefix
from tensorwright_lab.proposing.examples import Examples, WayTreeSettings, examples_of, fit
from tensorwright_lab.proposing.model import (
    ModelProposer, ModelProposers, ProposingModel, draw, load_proposing_model, log_chances,
    save_proposing_model,
)
