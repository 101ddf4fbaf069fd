"""E-graphs: sets of equal terms, and the rewrites that make them equal.

Read `egraph.py` first, then `analysis.py` (class data), `patterns.py` (rewrites), `saturation.py`
(the loop) and `explanation.py` (proofs).  The prover and pruning use it. It has no axioms, and its
only facts about shapes come from an analysis (`shape_analysis.py`).
"""

from tensorwright.rewriting.egraph.analysis import Analysis, Applies, Scope, Value, listed
from tensorwright.rewriting.egraph.egraph import INPUT, EGraph, Head, Id
from tensorwright.rewriting.egraph.explanation import Chain, Step, chain_between, used_applications
from tensorwright.rewriting.egraph.matching import Bound, Match, Matcher, instance_params
from tensorwright.rewriting.egraph.merging import Merge, merges_among
from tensorwright.rewriting.egraph.patterns import (
    Rewrite,
    RootPattern,
    can_be_matched,
    is_parameter_variable,
    rewrite_of,
    variables_of,
)
from tensorwright.rewriting.egraph.saturation import (
    Application,
    BudgetSpent,
    Goal,
    GoalReached,
    Limits,
    Plan,
    Runner,
    Saturated,
    StopReason,
    Template,
)
from tensorwright.rewriting.egraph.shape_analysis import ShapeAnalysis

__all__ = [
    "INPUT",
    "Analysis",
    "Application",
    "Applies",
    "Bound",
    "BudgetSpent",
    "Chain",
    "EGraph",
    "Goal",
    "GoalReached",
    "Head",
    "Id",
    "Limits",
    "Match",
    "Matcher",
    "Merge",
    "Plan",
    "Rewrite",
    "RootPattern",
    "Runner",
    "Saturated",
    "Scope",
    "ShapeAnalysis",
    "Step",
    "StopReason",
    "Template",
    "Value",
    "can_be_matched",
    "chain_between",
    "instance_params",
    "is_parameter_variable",
    "listed",
    "merges_among",
    "rewrite_of",
    "used_applications",
    "variables_of",
]
