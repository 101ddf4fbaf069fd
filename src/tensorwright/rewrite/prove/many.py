"""Many rules, in processes that can be killed.

Every rule is decided within counted bounds, so that no process should run long; one that does is
killed after `patience_s`, and the answer is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensorwright.rewrite.prove.crew import Crew, Lost
from tensorwright.rewrite.prove.outcome import Outcome, Unknown
from tensorwright.rewrite.prove.prover import prove
from tensorwright.rewrite.terms import Rule

__all__ = ["prove_all"]


def prove_all(
    rules: Sequence[Rule], workers: int = 2, patience_s: float = 120.0, confirm: bool = True
) -> Iterator[tuple[int, Outcome]]:
    """Decide rules with the shipped axioms; yields (place, outcome) as they are decided.

    Raises:  MachineError where Z3 is wanted and is not installed.
    """
    task = prove if confirm else _prove_without_z3
    with Crew(task, workers, patience_s) as crew:
        for place, found in crew.run(rules):
            yield place, Unknown(rules[place], found.reason) if isinstance(found, Lost) else found


def _prove_without_z3(rule: Rule) -> Outcome:
    return prove(rule, confirm=False)
