"""Check the shipped axioms, each in its turn, in several processes: is it true, is it needed?

concat-ones                       20 shapes, no fault
is_shortcut                       True: it is marked so
follows                           True: it follows from the axioms that are not shortcuts
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorwright.base import InternalError
from tensorwright.processes import Done, Job, WorkerPool
from tensorwright.rewriting.axioms import instances, load_axioms
from tensorwright.rewriting.prove.validation.soundness import derivable
from tensorwright.rewriting.prove.validation.validate import QUICK, Budget, Validation, validate

_PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True)
class Checked:
    """The results for all axioms of one name.

    is_shortcut  whether they only make proofs short
    follows      whether they follow from the others that are not shortcuts, within some limits
    """

    validation: Validation
    is_shortcut: bool
    follows: bool


def check_axioms(budget: Budget = QUICK, workers: int = 2) -> Iterator[Checked]:
    """Check the shipped axioms; yields them in the order of their names.

    Raises:  InternalError where a process ended before its time.
    """
    names = sorted(instances(load_axioms()))
    early: dict[int, Checked] = {}
    turn = 0
    with WorkerPool(workers) as pool:
        jobs = [Job(_check_axiom, (name, budget)) for name in names]
        for index, outcome in pool.results(jobs, _PATIENCE_S):
            if not isinstance(outcome, Done):
                where = f"axiom {names[index]}"
                raise InternalError(stage="rules", where=where, reason=str(outcome))
            early[index] = outcome.value
            while turn in early:
                yield early.pop(turn)
                turn += 1


def _check_axiom(name: str, budget: Budget) -> Checked:
    axioms = load_axioms()
    own = instances(axioms)[name]
    return Checked(
        validation=validate(name, own, budget),
        is_shortcut=own[0].shortcut,
        follows=derivable(name, axioms),
    )
