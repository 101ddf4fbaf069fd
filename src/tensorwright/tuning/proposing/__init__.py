"""A model that proposes schedules where nothing was measured. Read `decisions.py`, then `model.py`.

decisions.py    what can be decided next, as rows that do not depend on the operator
model.py        trees over such rows; drawing by them
examples.py     what good schedules on record decided      fitting.py   trees from that
model_file.py   a model as plain data                  proposer.py  what searches start from
"""

from tensorwright.tuning.proposing.decisions import COLUMNS, DecisionTables, Prefix
from tensorwright.tuning.proposing.examples import Examples, examples_of
from tensorwright.tuning.proposing.fitting import WayTreeSettings, fit
from tensorwright.tuning.proposing.model import Drawn, ProposingModel, draw, log_chances
from tensorwright.tuning.proposing.model_file import load_proposing_model, save_proposing_model
from tensorwright.tuning.proposing.proposer import ModelProposer, ModelProposers

__all__ = [
    "COLUMNS",
    "DecisionTables",
    "Drawn",
    "Examples",
    "ModelProposer",
    "ModelProposers",
    "Prefix",
    "ProposingModel",
    "WayTreeSettings",
    "draw",
    "examples_of",
    "fit",
    "load_proposing_model",
    "log_chances",
    "save_proposing_model",
]
