"""Prove, refute and explain rules. Read `prover.py` first, then `saturate.py` and `smt.py`.

`validate.py` asks whether the axioms themselves are true.
"""

from tensorwright.rewriting.prove.conditions import conditioned, least_condition
from tensorwright.rewriting.prove.instances import concrete_rule
from tensorwright.rewriting.prove.outcome import Basis, Outcome, Proved, Refuted, Unknown
from tensorwright.rewriting.prove.parameters import (
    case_count,
    cases_of,
    fitting_values,
    has_parameter_variables,
    is_of_several,
    places_of,
)
from tensorwright.rewriting.prove.problem import (
    Problem,
    longest_list,
    most_dimensions,
    names_few_dimensions,
    problems_of,
)
from tensorwright.rewriting.prove.prover import prove, prove_all, stamp_of, stamped
from tensorwright.rewriting.prove.ranks import largest_rank, reduced, reduced_at
from tensorwright.rewriting.prove.sampling import sample_shapes
from tensorwright.rewriting.prove.specialization import special_case
from tensorwright.rewriting.prove.suggest import missing_properties
from tensorwright.rewriting.prove.validation.checking import Checked, check_axioms
from tensorwright.rewriting.prove.validation.soundness import FALSE_GOALS, consistency, derivable
from tensorwright.rewriting.prove.validation.validate import (
    FULL,
    QUICK,
    Budget,
    Validation,
    validate,
)

__all__ = [
    "FALSE_GOALS",
    "FULL",
    "QUICK",
    "Basis",
    "Budget",
    "Checked",
    "Outcome",
    "Problem",
    "Proved",
    "Refuted",
    "Unknown",
    "Validation",
    "case_count",
    "cases_of",
    "check_axioms",
    "concrete_rule",
    "conditioned",
    "consistency",
    "derivable",
    "fitting_values",
    "has_parameter_variables",
    "is_of_several",
    "largest_rank",
    "least_condition",
    "longest_list",
    "missing_properties",
    "most_dimensions",
    "names_few_dimensions",
    "places_of",
    "problems_of",
    "prove",
    "prove_all",
    "reduced",
    "reduced_at",
    "sample_shapes",
    "special_case",
    "stamp_of",
    "stamped",
    "validate",
]
