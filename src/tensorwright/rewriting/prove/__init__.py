"""Prove, refute and explain rules. Read `prover.py` first, then `saturate.py` and `smt.py`."""

from tensorwright.rewriting.prove.instances import (
    cases_of, concrete_rule, has_parameter_variables, is_of_several, places_of,
)
from tensorwright.rewriting.prove.problem import (
    Problem, longest_list, most_dimensions, names_few_dimensions, problems_of, sample_shapes,
)
from tensorwright.rewriting.prove.prover import prove, prove_all, stamp_of, stamped
from tensorwright.rewriting.prove.ranks import largest_rank, reduced, reduced_at
from tensorwright.rewriting.prove.refute import (
    Basis, Outcome, Proved, Refuted, Unknown,
)
from tensorwright.rewriting.prove.specialization import special_case
