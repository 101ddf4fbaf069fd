"""How a session begins: what is measured first, what races, and what waits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.targets import native_target
from tests.unit.tuning.helpers import (
    FakeBuilder,
    FakeRunner,
    doubled,
    number_of,
    numbered_space,
    time_of,
)

from tensorwright.base import UserError
from tensorwright.graph import Workload
from tensorwright.records import MemoryStore, Setting, Status
from tensorwright.schedule import parse_trace
from tensorwright.tuning.population import Candidate
from tensorwright.tuning.selection import Chosen, Elite, Estimate
from tensorwright.tuning.session import Interrupt, Options
from tensorwright.tuning.session.ranking import Tools
from tensorwright.tuning.session.rounds import Session
from tensorwright.tuning.space import Space
from tensorwright.tuning.strategies import RandomSearch, Strategy
from tensorwright.tuning.task import Task
from tensorwright.tuning.task_scheduling import GradientScheduler, TaskState, predicted_promises

TARGET = native_target()
SETTING = Setting(TARGET, 2, "here")
OPTIONS = Options(should_rank=False, recheck_rounds=0)


def numbered(number: int) -> Candidate:
    return Candidate(f"split(y, i, [{number}])", "numbers", (("t", number),))


class FakePredictor:
    """Expects so much of each workload, and these numbers to be fast; refuses those not named."""

    def __init__(self, seconds: dict[str, float], *numbers: int, doubt: float = 2.0) -> None:
        self.seconds = seconds
        self.numbers = numbers
        self.doubt = doubt
        self.asked: list[str] = []
        self.hopes: dict[str, float] = {}

    def best(self, workload: Workload) -> Chosen:
        time_s = self.seconds.get(workload.key)
        estimate = None if time_s is None else Estimate(time_s, self.doubt * time_s)
        return Chosen(
            parse_trace("split(y, i, [8])"),
            estimate,
            None,
            is_by_rule=True,
            decisions=(("t", 8),),
        )

    def top(self, workload: Workload, count: int) -> tuple[Elite, ...]:
        self.asked.append(workload.key)
        if workload.key not in self.seconds:
            raise UserError(stage="tune", where=workload.key, reason="it has no price")
        time_s = self.hopes.get(workload.key, self.seconds[workload.key])
        estimate = Estimate(time_s, self.doubt * time_s)
        return tuple(Elite(numbered(number), estimate) for number in self.numbers[:count])

    def top_question(self, workload: Workload, count: int) -> FakeQuestion:
        return FakeQuestion(self, workload, count)


@dataclass(frozen=True, slots=True)
class FakeQuestion:
    predictor: FakePredictor
    workload: Workload
    count: int

    def answer(self) -> tuple[Elite, ...]:
        return self.predictor.top(self.workload, self.count)


def run(
    store: MemoryStore,
    predictor: FakePredictor | None,
    tasks: Sequence[Task],
    *,
    trials: int = 60,
    runner: FakeRunner | None = None,
    interrupt: Interrupt | None = None,
    make_strategy: Callable[[Task, Space, int], Strategy] = RandomSearch,
    by_rule: int = 0,
    options: Options = OPTIONS,
    builder: FakeBuilder | None = None,
) -> Session:
    search = replace(options, trials=trials, seed=0, interrupt=interrupt)
    make_default = (lambda task, target: numbered(by_rule)) if by_rule else None
    parts: Any = (
        builder or FakeBuilder(),
        runner or FakeRunner(),
        GradientScheduler(),
        make_strategy,
    )
    tools = Tools(*parts, numbered_space, predictor, make_default)  # type: ignore[arg-type]
    session = Session(tuple(tasks), SETTING, store, search, tools, "")
    session.run()
    return session


def order(store: MemoryStore) -> list[tuple[str, int]]:
    return [(one.workload, number_of(one.trace)) for one in store.query()]


SECONDS = {"small": 1e-6, "large": 1.0, "middle": 0.5}
TASKS = tuple(Task(doubled(key)) for key in ("small", "middle", "large"))


def test_the_costliest_by_prediction_are_measured_first_and_the_tiny_wait() -> None:
    store = MemoryStore()
    run(store, FakePredictor(SECONDS, 1, 2, 3), TASKS, trials=100)
    found = order(store)
    assert found[:2] == [("large", 8), ("middle", 8)]
    first_of_small = next(n for n, (key, _) in enumerate(found) if key == "small")
    raced = {key for key, _ in found[2:first_of_small]}
    assert raced == {"large", "middle"}
    assert found[first_of_small] == ("small", 8)


def test_weights_count() -> None:
    store = MemoryStore()
    tasks = (Task(doubled("large")), Task(doubled("middle"), 3.0))
    run(store, FakePredictor(SECONDS, 1), tasks, trials=2)
    assert order(store) == [("middle", 8), ("large", 8)]


def test_what_may_be_slow_after_all_does_not_wait() -> None:
    store = MemoryStore()
    run(store, FakePredictor(SECONDS, 1, doubt=1e5), TASKS, trials=3)
    assert [key for key, _ in order(store)] == ["large", "middle", "small"]


def test_a_workload_without_a_price_does_not_wait() -> None:
    store = MemoryStore()
    tasks = (*TASKS, Task(doubled("unpriced")))
    run(store, FakePredictor(SECONDS, 1), tasks, trials=3)
    assert [key for key, _ in order(store)] == ["unpriced", "large", "middle"]


def test_predictions_race_in_the_first_round_the_best_first() -> None:
    store = MemoryStore()
    run(store, FakePredictor(SECONDS, *range(11, 31)), [Task(doubled("large"))], trials=12)
    found = order(store)
    assert found[:9] == [("large", n) for n in (8, *range(11, 19))]
    assert {one.round for one in list(store.query())[1:9]} == {1}
    assert {one.decisions for one in list(store.query())[:9]} == {
        (("t", n),) for n in (8, *range(11, 19))
    }


def test_the_schedule_by_rule_races_too() -> None:
    store = MemoryStore()
    run(store, FakePredictor(SECONDS, 1, 2), [Task(doubled("large"))], trials=4, by_rule=30)
    assert order(store) == [("large", n) for n in (8, 30, 1, 2)]


def test_what_promises_most_races_first() -> None:
    store = MemoryStore()
    predictor = FakePredictor(dict.fromkeys(("large", "middle", "small"), 1e-3), 1, 2)
    predictor.hopes = {"small": 1e-4}
    run(store, predictor, TASKS, trials=9)
    found = order(store)
    assert {key for key, _ in found[:3]} == {"large", "middle", "small"}
    assert [key for key, _ in found[3:5]] == ["small", "small"]


def test_elites_that_other_processes_found_are_those_found_here() -> None:
    alone, helped = MemoryStore(), MemoryStore()
    predictor = FakePredictor({**SECONDS, "small": 0.7}, 1, 2, 3)
    run(alone, predictor, TASKS, trials=20)
    predictor.asked.clear()
    run(helped, predictor, TASKS, trials=20, builder=FakeBuilder(does_background_jobs=True))
    assert order(alone) == order(helped)
    assert sorted(predictor.asked) == ["large", "middle", "small"]


def test_nothing_is_measured_again_before_a_race() -> None:
    options = Options(should_rank=False, recheck_rounds=1)
    store = MemoryStore()
    run(store, FakePredictor(SECONDS, 1), TASKS[1:], trials=4, options=options)
    assert sorted(order(store)) == sorted((key, n) for key in ("large", "middle") for n in (8, 1))


def test_what_is_on_record_does_not_race_again() -> None:
    store = MemoryStore()
    task = Task(doubled("large"))
    run(store, FakePredictor(SECONDS, 1, 2), [task], trials=4)
    run(store, FakePredictor(SECONDS, 2, 8, 40), [task], trials=1)
    found = order(store)
    assert found[4] == ("large", 40)
    assert len(set(found)) == len(found)


def test_a_race_without_predictions_is_a_round_like_others() -> None:
    store = MemoryStore()
    session = run(store, FakePredictor({}, 1), [Task(doubled("unpriced"))], trials=20)
    assert session.budget.trials == 20


def test_strategies_are_made_when_they_are_asked() -> None:
    made: list[str] = []

    def make(task: Task, space: Space, seed: int) -> Strategy:
        made.append(task.workload.key)
        return RandomSearch(task, space, seed)

    run(MemoryStore(), FakePredictor(SECONDS, 1, 2), TASKS, trials=6, make_strategy=make)
    assert made == []
    run(MemoryStore(), FakePredictor(SECONDS, 1, 2), TASKS[2:], trials=6, make_strategy=make)
    assert made == ["large"]


def test_a_strategy_learns_what_was_measured_before_it_was_made() -> None:
    told: list[int] = []

    class Listening(RandomSearch):
        def observe(self, records):  # type: ignore[no-untyped-def]
            told.extend(number_of(one.trace) for one in records)
            super().observe(records)

    predictor = FakePredictor(SECONDS, 1, 2, 3)
    run(MemoryStore(), predictor, TASKS[2:], trials=10, make_strategy=Listening)
    assert told[:4] == [8, 1, 2, 3]
    assert len(told) == 10


def test_a_strategy_that_cannot_be_made_costs_its_workload_only() -> None:
    def make(task: Task, space: Space, seed: int) -> Strategy:
        if task.workload.key == "large":
            raise UserError(stage="tune", where="space", reason="no rule applies")
        return RandomSearch(task, space, seed)

    session = run(MemoryStore(), FakePredictor(SECONDS, 1), TASKS, trials=60, make_strategy=make)
    large = session.searches[2].state
    assert (large.is_exhausted, large.trials) == (True, 2)
    assert "no rule applies" in large.error
    assert math.isfinite(large.best_s)
    assert session.budget.trials == 60


@pytest.mark.parametrize("stop", [1, 3, 5, 6, 11, 12, 20])
def test_an_interrupted_session_goes_on_as_if_it_had_not_been(stop: int) -> None:
    whole, broken = MemoryStore(), MemoryStore()
    predictor = FakePredictor(SECONDS, 1, 2, 3, 4)
    run(whole, predictor, TASKS, trials=50)
    interrupt = Interrupt()
    runner = FakeRunner(before=lambda count: interrupt.set() if count >= stop else None)
    run(broken, predictor, TASKS, trials=50, runner=runner, interrupt=interrupt)
    assert broken.count() == stop
    run(broken, predictor, TASKS, trials=50)
    assert order(broken) == order(whole)


def test_a_default_that_fails_does_not_stop_the_race() -> None:
    store = MemoryStore()
    runner = FakeRunner({8: Status.CRASHED})
    session = run(
        store, FakePredictor(SECONDS, 1, 2), [Task(doubled("large"))], trials=3, runner=runner
    )
    times = [time_of("large", f"split(y, i, [{n}])") for n in (1, 2)]
    assert session.searches[0].state.best_s == min(times)


# The scheduler


def state(key: str, predicted_s: float, default_s: float = math.inf, upper: float = 2.0) -> Any:
    return TaskState(
        Task(doubled(key)),
        trials=int(math.isfinite(default_s)),
        default_s=default_s,
        best_s=default_s,
        predicted_s=predicted_s,
        upper_s=upper * predicted_s,
    )


PLAIN = GradientScheduler(epsilon=0.0)


def test_where_much_is_predicted_the_first_round_comes_first() -> None:
    good, bad = state("good", 1.0, 1.0), state("bad", 0.1, 0.8)
    other = state("other", 1.0, 1.0)
    assert PLAIN.choose([good, bad, other]) == 1


def test_the_certain_comes_before_the_uncertain() -> None:
    certain = state("certain", 0.4, 1.0, upper=1.2)
    uncertain = state("uncertain", 0.4, 1.0, upper=9.0)
    usual = [state(f"usual{n}", 1.0, 1.0) for n in range(3)]
    assert PLAIN.choose([uncertain, certain, *usual]) == 1
    promises = predicted_promises([uncertain, certain, *usual])
    assert promises[1] > promises[0] > promises[2]


def test_a_machine_that_is_slower_than_predicted_promises_nothing() -> None:
    slow = [state(f"slow{n}", 1.0, 2.0) for n in range(3)]
    assert set(predicted_promises(slow)) == {0.1}
    assert predicted_promises([SimpleNamespace(is_predicted=False)]) == (1.0,)  # type: ignore[list-item]


def test_one_that_was_not_measured_counts_with_its_prediction() -> None:
    measured, waiting = state("measured", 1.0, 1.0), state("waiting", 0.5)
    tiny = state("tiny", 1e-6)
    assert PLAIN.gains([measured, waiting, tiny]) == pytest.approx([0.8, 0.4, 0.8e-6])
    measured.history = (1.0,)
    assert PLAIN.choose([measured, waiting, tiny]) == 1
    waiting.history, waiting.trials, waiting.best_s = (0.5,), 1, 0.5
    assert PLAIN.choose([measured, waiting, tiny]) == 0


def test_one_that_failed_does_not_count_with_its_prediction() -> None:
    failed = state("failed", 1.0)
    failed.trials = 1
    assert PLAIN.gains([failed]) == (0.0,)
