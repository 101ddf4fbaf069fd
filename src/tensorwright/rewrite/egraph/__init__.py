"""E-graphs: sets of equal terms, and the rewrites that make them equal.

Read `egraph.py` first, then `analysis.py` (class data), `patterns.py` (rewrites), `saturation.py`
(the loop) and `explanation.py` (proofs).  Prover and pruning stand on it; it knows nothing of
axioms, and of shapes only what an analysis (`shape_analysis.py`) says.
"""

from tensorwright.rewrite.egraph.analysis import Analysis, Scope, Value
from tensorwright.rewrite.egraph.egraph import INPUT, EGraph, Id
from tensorwright.rewrite.egraph.explanation import Chain, Step, chain_between, used_applications
from tensorwright.rewrite.egraph.patterns import Rewrite, rewrite_of, variables_of
from tensorwright.rewrite.egraph.saturation import (
    Application,
    BudgetSpent,
    Goal,
    GoalReached,
    Limits,
    Runner,
    Saturated,
    StopReason,
)
from tensorwright.rewrite.egraph.shape_analysis import ShapeAnalysis

__all__ = [
    "INPUT",
    "Analysis",
    "Application",
    "BudgetSpent",
    "Chain",
    "EGraph",
    "Goal",
    "GoalReached",
    "Id",
    "Limits",
    "Rewrite",
    "Runner",
    "Saturated",
    "Scope",
    "ShapeAnalysis",
    "Step",
    "StopReason",
    "Value",
    "chain_between",
    "rewrite_of",
    "used_applications",
    "variables_of",
]
