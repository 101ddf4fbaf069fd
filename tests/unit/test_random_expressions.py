"""Random expressions, half of them with a mistake: each is refused, or equals NumPy.

They run in a process of their own, so that one that crashes is a failure with its text.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.draws import first_seed
from tests.unit.random_expressions import case_of, fault_of

from tensorwright.processes import Done, Job, Outcome, WorkerPool

ROOT = Path(__file__).parents[2]
LIMIT_S = 300.0
BATCH = 25


def verdicts(seeds: tuple[int, ...]) -> list[tuple[str, str]]:
    """What becomes of the expressions of some seeds, in a worker."""
    return [fault_of(seed) for seed in seeds]


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    path = os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))
    with WorkerPool(1, variables={"PYTHONPATH": path}) as workers:
        yield workers


def _told(pool: WorkerPool, seed: int) -> tuple[str, str]:
    (outcome,) = pool.run([Job(verdicts, ((seed,),))], LIMIT_S)
    return outcome.value[0] if isinstance(outcome, Done) else _crashed(seed, outcome)


def _crashed(seed: int, outcome: Outcome) -> tuple[str, str]:
    return "wrong", f"{outcome}\n{case_of(seed).text}"


@pytest.mark.parametrize("count", [50, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.drawn
def test_an_expression_is_refused_or_equals_numpy(pool: WorkerPool, count: int) -> None:
    first = first_seed()
    batches = [tuple(range(n, n + BATCH)) for n in range(first, first + count, BATCH)]
    outcomes = pool.run([Job(verdicts, (batch,)) for batch in batches], LIMIT_S)
    told: dict[int, tuple[str, str]] = {}
    for batch, outcome in zip(batches, outcomes, strict=True):
        for place, seed in enumerate(batch):  # one by one where one of them ends the process
            told[seed] = outcome.value[place] if isinstance(outcome, Done) else _told(pool, seed)
    wrong = [f"seed {seed}: {text}" for seed, (verdict, text) in told.items() if verdict == "wrong"]
    assert not wrong, "\n\n".join(wrong)
    without_mistake = Counter(verdict for seed, (verdict, _) in told.items() if seed % 2 == 0)
    assert without_mistake == {"right": count // 2}
    mistakes = Counter(verdict for seed, (verdict, _) in told.items() if seed % 2)
    assert mistakes["refused"] > 0.8 * count / 2  # some mistakes mean something all the same
