"""Prove, refute and explain rules. Read `prover.py` first, then `saturate.py` and `smt.py`.

`validate.py` asks whether the axioms themselves are true.
"""

from tensorwright.rewrite.prove.conditions import conditioned, least_condition
from tensorwright.rewrite.prove.outcome import Outcome, Proved, Refuted, Unknown
from tensorwright.rewrite.prove.problem import Problem, problems_of
from tensorwright.rewrite.prove.prover import prove, prove_all, stamp_of, stamped
from tensorwright.rewrite.prove.refute import Counterexample, refute
from tensorwright.rewrite.prove.sampling import sample_shapes
from tensorwright.rewrite.prove.suggest import MissingProperty, missing_properties
from tensorwright.rewrite.prove.validation.checking import Checked, check_axioms
from tensorwright.rewrite.prove.validation.soundness import FALSE_GOALS, consistency, derivable
from tensorwright.rewrite.prove.validation.validate import (
    FULL,
    QUICK,
    Budget,
    Fault,
    Validation,
    validate,
)

__all__ = [
    "FALSE_GOALS",
    "FULL",
    "QUICK",
    "Budget",
    "Checked",
    "Counterexample",
    "Fault",
    "MissingProperty",
    "Outcome",
    "Problem",
    "Proved",
    "Refuted",
    "Unknown",
    "Validation",
    "check_axioms",
    "conditioned",
    "consistency",
    "derivable",
    "least_condition",
    "missing_properties",
    "problems_of",
    "prove",
    "prove_all",
    "refute",
    "sample_shapes",
    "stamp_of",
    "stamped",
    "validate",
]
