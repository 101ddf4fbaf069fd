"""Many rules, in processes that can be killed.

Every rule is decided within counted bounds, so that no process should run long; one that does is
killed after `patience_s`, and the answer is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensorwright.processes import Done, Job, WorkerPool
from tensorwright.rewrite.prove.outcome import Outcome, Unknown
from tensorwright.rewrite.prove.prover import prove
from tensorwright.rewrite.terms import Rule

__all__ = ["prove_all"]


def prove_all(
    rules: Sequence[Rule], workers: int = 2, patience_s: float = 120.0, confirm: bool = True
) -> Iterator[tuple[int, Outcome]]:
    """Decide rules with the shipped axioms; yields (index, outcome) as they are decided.

    Raises:  MachineError where Z3 is wanted and is not installed.
    """
    task = prove if confirm else _prove_without_z3
    with WorkerPool(workers) as pool:
        for index, outcome in pool.results([Job(task, (rule,)) for rule in rules], patience_s):
            answer = outcome.value if isinstance(outcome, Done) else None
            yield index, answer or Unknown(rules[index], str(outcome))


def _prove_without_z3(rule: Rule) -> Outcome:
    return prove(rule, confirm=False)
