"""A model that proposes schedules where nothing was measured. Read `decisions.py`, then `model.py`.

decisions.py    what can be decided next, as rows that do not depend on the operator
model.py        trees over such rows; drawing by them, which searches start from
examples.py     what good schedules on record decided      fitting.py   trees from that
model.py   a model as plain data
"""

from tensorwright_lab.proposing.decisions import COLUMNS, DecisionTables, Prefix
from tensorwright_lab.proposing.examples import Examples, examples_of
from tensorwright_lab.proposing.fitting import WayTreeSettings, fit
from tensorwright_lab.proposing.model import (
    ModelProposer,
    ModelProposers,
    ProposingModel,
    draw,
    log_chances,
)
from tensorwright_lab.proposing.model_file import load_proposing_model, save_proposing_model

__all__ = [
    "COLUMNS",
    "DecisionTables",
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
