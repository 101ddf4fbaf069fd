"""E-graphs: sets of equal terms, and the rewrites that make them equal.

Read `egraph.py` first, then `analysis.py` (class data), `patterns.py` (rewrites), `saturation.py`
(the loop, and proofs).  The prover and pruning use it. It has no axioms, and its
only facts about shapes come from an analysis (`ShapeAnalysis`).
"""

from tensorwright.rewriting.egraph.analysis import (
    INPUT, Analysis, Applies, Scope, ShapeAnalysis, Value, listed,
)
from tensorwright.rewriting.egraph.egraph import EGraph, Head, Id
from tensorwright.rewriting.egraph.matching import (
    Bound, Match, Matcher, Merge, instance_params, merges_among,
)
from tensorwright.rewriting.egraph.patterns import (
    Rewrite, RootPattern, can_be_matched, is_parameter_variable, rewrite_of, usable_directions,
    usable_rewrite, variables_of, with_size_variables,
)
from tensorwright.rewriting.egraph.saturation import (
    Application, BudgetSpent, Chain, Goal, GoalReached, Limits, Plan, Runner, Saturated, Step,
    StopReason, Template, chain_between, used_applications,
)
from tensorwright.rewriting.egraph.searching import joined
