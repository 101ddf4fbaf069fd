"""Tuning sessions, with a builder and a runner that take no time."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import fields, replace
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

from tensorwright import base
from tensorwright.records import MemoryStore, Record, SavedSession, Setting, Status, WorkloadText
from tensorwright.tuning import session
from tensorwright.tuning.measuring import Measurement
from tensorwright.tuning.population import Candidate
from tensorwright.tuning.session import arguments as spending
from tensorwright.tuning.session.arguments import Spent
from tensorwright.tuning.session.ranking import seeds_of
from tensorwright.tuning.space import Space
from tensorwright.tuning.strategies import RandomSearch, Strategy
from tensorwright.tuning.task import Task
from tensorwright.tuning.task_scheduling import LatencyRequirement

TARGET = native_target()
TASKS = (Task(doubled("one")), Task(doubled("two"), 3.0))
NO_RANKING = session.Options(should_rank=False)
PLAIN = session.Options(should_rank=False, recheck_rounds=0)


class Listener:
    def __init__(self) -> None:
        self.seen: list[session.Progress] = []
        self.is_closed = False

    def on_progress(self, progress: session.Progress) -> None:
        self.seen.append(progress)

    def close(self) -> None:
        self.is_closed = True


def run(store: MemoryStore, **changes: object) -> session.TuneResult:
    """A session; `changes` are fields of what it is given, whichever group they are in."""
    given: dict[str, Any] = {
        "target": TARGET,
        "threads": 2,
        "hardware": "here",
        "trials": 30,
        "seed": 0,
        "builder": FakeBuilder(),
        "runner": FakeRunner(),
        "make_space": numbered_space,
        "make_strategy": RandomSearch,
        "options": NO_RANKING,
    } | changes

    def group(kind: type) -> Any:
        names = [field.name for field in fields(kind)]
        return kind(**{name: given[name] for name in names if name in given})

    setting, parts = group(Setting), group(session.SessionParts)
    own = {each.name: given[each.name] for each in fields(session.Options) if each.name in given}
    search = replace(given["options"], **own)
    tasks, name = given.get("tasks", TASKS), given.get("name", "")
    return session.tune(tasks, setting, store, search, name=name, parts=parts)


def traces(store: MemoryStore, workload: str | None = None) -> list[str]:
    return [f"{one.workload} {one.trace}" for one in store.query(workload=workload)]


def test_every_workload_gets_its_default_schedule_first() -> None:
    store = MemoryStore()
    run(store)
    first, second, *_ = traces(store)
    assert (first, second) == ("one split(y, i, [8])", "two split(y, i, [8])")


def test_the_budget_is_kept_and_the_best_is_found() -> None:
    store = MemoryStore()
    result = run(store)
    assert result.reason is session.StopReason.BUDGET_SPENT
    assert result.trials == store.count() == 30
    assert sum(task.trials for task in result.tasks) == 30
    for task in result.tasks:
        key = task.task.workload.key
        times = {one.trace: one.median_s for one in store.query(workload=key)}
        assert task.best_s == min(times.values()) == times[task.trace]
        assert task.default_s == time_of(key, "split(y, i, [8])")
        assert task.error == ""
    assert result.resume_text == ""


def test_records_say_all_that_is_needed() -> None:
    store = MemoryStore()
    run(store, seed=5)
    record = list(store.query())[-1]
    assert (record.target, record.hardware, record.threads) == (TARGET.key, "here", 2)
    assert (record.seed, record.decisions) == (5, (("t", number_of(record.trace)),))
    assert record.round > 0
    assert store.workload_text("one") == WorkloadText.of(TASKS[0].workload).text


def test_equal_seeds_measure_the_same() -> None:
    one, other, third = MemoryStore(), MemoryStore(), MemoryStore()
    run(one, seed=1)
    run(other, seed=1)
    run(third, seed=2)
    assert traces(one) == traces(other) != traces(third)


def test_a_small_space_is_exhausted() -> None:
    result = run(MemoryStore(), trials=1000)
    assert result.reason is session.StopReason.EXHAUSTED
    assert result.trials == 80


def test_no_budget_is_refused() -> None:
    with pytest.raises(base.UsageError, match="neither trials nor minutes"):
        run(MemoryStore(), trials=None)


def test_a_target_that_cannot_run_here_is_refused() -> None:
    other = "aarch64-neon" if TARGET.arch == "x86-64" else "x86-64-avx2"
    with pytest.raises(
        base.MachineError, match=f"target {other}: this machine cannot run its code"
    ):
        run(MemoryStore(), target=base.cpu_target(other))


def test_minutes_are_a_budget_too() -> None:
    result = run(MemoryStore(), trials=None, minutes=0.0)
    assert result.reason is session.StopReason.BUDGET_SPENT
    assert result.trials == 0


def test_equal_workloads_are_one_task() -> None:
    result = run(MemoryStore(), tasks=(*TASKS, Task(doubled("one"), 4.0)))
    assert [task.task.weight for task in result.tasks] == [5.0, 3.0]


def test_nothing_on_record_is_measured_again() -> None:
    store = MemoryStore()
    run(store)
    builder, runner = FakeBuilder(), FakeRunner()
    before = Counter(traces(store))
    result = run(store, builder=builder, runner=runner, options=PLAIN)
    assert result.trials == 30
    assert not before & Counter(f"{key} {trace}" for key, trace in runner.measured)
    assert max(Counter(traces(store)).values()) == 1


def test_records_of_other_machines_do_not_count() -> None:
    store = MemoryStore()
    run(store)
    result = run(store, hardware="there")
    assert result.trials == 30
    assert store.count(hardware="there") == 30


def test_failures_are_records_and_never_the_best() -> None:
    failures = [status for status in Status if not status.is_timed]
    statuses = dict(zip(range(1, 41), itertools.cycle((*failures, Status.OK)), strict=False))
    statuses[8] = Status.WRONG_ANSWER  # the default schedule
    store = MemoryStore()
    result = run(
        store, trials=1000, runner=FakeRunner(statuses), builder=FakeBuilder(failing=[9, 18])
    )
    assert {one.status for one in store.query()} >= {Status.OK, *failures}
    good = [n for n in range(1, 41) if statuses[n] is Status.OK and n not in (9, 18)]
    for task in result.tasks:
        assert number_of(task.trace) in good
        assert math.isinf(task.default_s)
    assert all(one.error for one in store.query() if one.status in failures)


def test_a_candidate_that_was_dropped_is_not_the_best() -> None:
    store = MemoryStore()
    statuses = {number: Status.CENSORED for number in range(1, 41) if number != 8}
    result = run(store, runner=FakeRunner(statuses))
    assert [task.trace for task in result.tasks] == ["split(y, i, [8])"] * 2


def test_a_workload_that_never_works_is_given_up_and_named() -> None:
    statuses = dict.fromkeys(range(1, 101), Status.CRASHED)

    def wide(task: Task, target: object) -> object:
        return numbered_space(task, TARGET, 100)

    result = run(MemoryStore(), trials=1000, runner=FakeRunner(statuses), make_space=wide)
    assert result.reason is session.StopReason.EXHAUSTED
    assert result.trials < 150
    for task in result.tasks:
        assert (task.trace, task.best_s, task.error) == ("", math.inf, "crashed: it crashed")


def test_a_learned_search_gives_up_as_well_and_finds_the_best_of_a_small_space() -> None:
    crashing = FakeRunner(dict.fromkeys(range(1, 101), Status.CRASHED))
    failed = run(MemoryStore(), trials=400, runner=crashing, make_strategy=None)
    assert failed.reason is session.StopReason.EXHAUSTED
    assert all(task.trace == "" for task in failed.tasks)
    store = MemoryStore()
    found = run(store, trials=400, make_strategy=None)
    assert found.reason is session.StopReason.EXHAUSTED
    whole = run(MemoryStore(), trials=400)
    assert [task.best_s for task in found.tasks] == [task.best_s for task in whole.tasks]


def test_a_workload_without_a_space_does_not_stop_the_others() -> None:
    def some(task: Task, target: object) -> object:
        if task.workload.key == "one":
            raise base.UserError(stage="tune", where="workload one", reason="no rule applies")
        return numbered_space(task, TARGET)

    result = run(MemoryStore(), make_space=some)
    assert "no rule applies" in result.tasks[0].error
    assert result.tasks[1].trials == 30


def test_the_best_few_are_measured_again_in_turn_with_the_default() -> None:
    store, runner = MemoryStore(), FakeRunner()
    result = run(store, runner=runner, options=session.Options(), trials=60)
    assert set(runner.turns) <= {4, 5}
    assert len(runner.turns) == 2
    for task in result.tasks:
        again = [one for one in store.query(workload=task.task.workload.key) if one.seed == 0]
        assert len(again) > task.trials
        defaults = [one for one in again if one.trace == "split(y, i, [8])"]
        assert len(defaults) == 2


def test_the_minutes_are_for_the_ranking_and_what_comes_after_it_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr(spending.time, "monotonic", lambda: now[0])
    spent = spending.Spending(session.Options(minutes=1.0, after_s=6.0), Spent(seconds=10.0), 9.0)
    seen = []
    for second in (0.0, 34.0, 35.0, 43.0, 44.0):
        now[0] = 100.0 + second
        seen.append((spent.is_late, spent.is_over))
    open_, late, over = (False, False), (True, False), (True, True)
    assert seen == [open_, open_, late, late, over]


@pytest.mark.parametrize(("after_s", "most_s"), [(10.0, 52.0), (0.0, 62.0)])
def test_a_session_ends_before_what_comes_after_it(
    monkeypatch: pytest.MonkeyPatch, after_s: float, most_s: float
) -> None:
    now = [0.0]

    def work(_: int) -> None:
        now[0] += 1.0

    monkeypatch.setattr(spending.time, "monotonic", lambda: now[0])
    options = session.Options(after_s=after_s, recheck_rounds=0)
    changes = {"options": options, "minutes": 1.0, "trials": None}
    run(MemoryStore(), runner=FakeRunner(before=work), **changes)
    assert most_s - 3.0 <= now[0] <= most_s


class Deceptive(FakeRunner):
    """The first measurement of every trace is far too good for one of them."""

    def _one(self, workload, trace):  # type: ignore[no-untyped-def]
        found = super()._one(workload, trace)
        is_first = self.measured.count((workload.key, trace)) == 1
        if is_first and number_of(trace) == 8:
            return type(found)(found.status, (1e-6,))
        return found


def test_a_lucky_first_measurement_does_not_win() -> None:
    store = MemoryStore()
    result = run(store, runner=Deceptive(), options=session.Options(), trials=60)
    for task in result.tasks:
        assert task.default_s > 0.001
        assert task.best_s < task.default_s
        assert number_of(task.trace) != 8


class Drifting(FakeRunner):
    """The machine is three times as fast once programs take turns."""

    def _one(self, workload, trace):  # type: ignore[no-untyped-def]
        found = super()._one(workload, trace)
        factor = 1 / 3 if self.turns else 1.0
        return replace(found, times_s=tuple(factor * one for one in found.times_s))


def test_speed_ups_are_those_of_the_turns_at_the_end() -> None:
    result = run(MemoryStore(), runner=Drifting(), options=session.Options(), trials=60)
    for task in result.tasks:
        key = task.task.workload.key
        assert task.compared is not None
        default_s, best_s = time_of(key, "split(y, i, [8])"), time_of(key, task.trace)
        assert task.compared.untuned_s == pytest.approx(default_s / 3)
        assert task.compared.tuned_s == pytest.approx(best_s / 3)
        assert task.speed_up == pytest.approx(default_s / best_s)
        assert task.taken == task.trace
        assert not task.is_from_earlier


def test_of_many_lucky_ones_the_best_that_took_turns_is_compared() -> None:
    """Every first measurement is better than any second: all of them cannot take turns."""

    class Lucky(FakeRunner):
        def _one(self, workload, trace):  # type: ignore[no-untyped-def]
            found = super()._one(workload, trace)
            factor = 1.0 if self.measured.count((workload.key, trace)) == 1 else 10.0
            return replace(found, times_s=tuple(factor * one for one in found.times_s))

    store = MemoryStore()
    result = run(store, runner=Lucky(), options=session.Options(recheck_rounds=0), trials=60)
    for task in result.tasks:
        key = task.task.workload.key
        assert task.compared is not None
        assert task.taken != task.trace
        assert task.compared.tuned_s == pytest.approx(10 * time_of(key, task.taken))
        assert task.compared.untuned_s == pytest.approx(10 * time_of(key, "split(y, i, [8])"))


def test_without_turns_no_speed_up_is_claimed() -> None:
    unranked = run(MemoryStore())
    interrupt, runner = interrupt_after(11)
    stopped = run(MemoryStore(), runner=runner, interrupt=interrupt, options=session.Options())
    for task in (*unranked.tasks, *stopped.tasks):
        assert task.compared is None
        assert math.isnan(task.speed_up)


def test_what_an_earlier_run_has_found_is_known() -> None:
    store = MemoryStore()
    first = run(store, trials=1000)
    assert not any(task.is_from_earlier for task in first.tasks)
    again = run(store, trials=1000)
    assert all(task.is_default_earlier and task.is_from_earlier for task in again.tasks)
    assert all(task.compared is None for task in again.tasks)
    ranked = run(store, trials=1000, options=session.Options())
    for task in ranked.tasks:
        assert task.compared is not None
        assert task.is_from_earlier == (not task.compared.is_same)
        assert replace(task, earlier=frozenset()).is_from_earlier is False


def test_workloads_have_the_times_that_they_take_in_networks() -> None:
    result = run(MemoryStore(), options=session.Options())
    one, two = session.Comparison(1.0, 0.5, 1.8, 2.2), session.Comparison(2.0, 1.5, 1.3, 1.4)
    networks = (
        session.NetworkResult("a", one, (("one", one),), (("one", "split(y, i, [2])"),)),
        session.NetworkResult("b", two, (("one", two),)),
        session.NetworkResult("c", reason="stopped"),
    )
    first, second = result.with_networks(networks).tasks
    assert first.compared == session.Comparison(1.5, 1.0, 1.3, 2.2)
    assert first.speed_up == 1.5
    assert first.taken == "split(y, i, [2])"
    assert second == result.tasks[1]


def test_a_comparison_holds_its_speed_up() -> None:
    compared = session.Comparison.of((3.0, 2.0, 4.0), (1.0, 2.0))
    assert (compared.untuned_s, compared.tuned_s) == (3.0, 1.5)
    assert compared.speed_up == 2.0
    assert (compared.least, compared.most) == (1.0, 4.0)
    assert str(compared) == "2.00x (1.00 to 4.00)"
    assert compared.as_untuned == session.Comparison(3.0, 3.0, 1.0, 1.0, is_same=True)


def test_a_wrong_answer_in_the_ranking_takes_the_record_away() -> None:
    class Turning(FakeRunner):
        def _one(self, workload, trace):  # type: ignore[no-untyped-def]
            found = super()._one(workload, trace)
            if self.turns and trace == self.best(workload.key):
                return type(found)(Status.WRONG_ANSWER, (), "now it is wrong")
            return found

        def best(self, key: str) -> str:
            return min({t for k, t in self.measured if k == key}, key=lambda t: time_of(key, t))

    store, runner = MemoryStore(), Turning()
    result = run(store, runner=runner, options=session.Options(), trials=60)
    for task in result.tasks:
        assert task.trace != runner.best(task.task.workload.key)
        assert task.trace


def interrupt_after(count: int) -> tuple[session.Interrupt, FakeRunner]:
    interrupt = session.Interrupt()
    return interrupt, FakeRunner(before=lambda done: interrupt.set() if done >= count else None)


def test_an_interrupted_session_keeps_what_it_measured_and_goes_on_where_it_stopped() -> None:
    store, whole = MemoryStore(), MemoryStore()
    interrupt, runner = interrupt_after(11)
    result = run(store, runner=runner, interrupt=interrupt)
    assert result.is_interrupted
    assert result.trials == store.count() == 11
    assert result.resume_text.startswith("stopped after 11 trials, all of them kept")
    assert result.session in result.resume_text
    lost = replace(result, is_kept=False).resume_text
    assert "the disk was full, so the command starts anew" in lost
    assert "kept" not in lost

    again = run(store)
    assert again.reason is session.StopReason.BUDGET_SPENT
    assert again.session == result.session
    assert again.trials == store.count() == 30
    assert sum(task.trials for task in again.tasks) == 30

    run(whole)
    assert traces(store) == traces(whole)


def test_an_interrupted_ranking_is_done_when_the_session_resumes() -> None:
    store = MemoryStore()
    interrupt, runner = interrupt_after(30)
    assert run(store, runner=runner, interrupt=interrupt, options=session.Options()).is_interrupted
    assert store.count() == 30
    fresh = FakeRunner()
    again = run(store, runner=fresh, options=session.Options())
    assert again.reason is session.StopReason.BUDGET_SPENT
    assert fresh.turns
    assert store.count() > 30


def test_a_finished_session_is_followed_by_a_new_one() -> None:
    store = MemoryStore()
    run(store)
    assert run(store, trials=10, options=PLAIN).trials == 10
    assert store.count() == 40


def test_resuming_can_be_refused() -> None:
    store = MemoryStore()
    interrupt, runner = interrupt_after(11)
    run(store, runner=runner, interrupt=interrupt)
    fresh = session.Options(should_rank=False, should_resume=False)
    assert run(store, options=fresh).trials == 30


def test_another_seed_is_another_session() -> None:
    store = MemoryStore()
    interrupt, runner = interrupt_after(11)
    first = run(store, runner=runner, interrupt=interrupt)
    second = run(store, seed=1)
    assert second.session != first.session
    assert second.trials == 30


def test_a_saved_state_that_cannot_be_read_is_an_error() -> None:
    store = MemoryStore()
    interrupt, runner = interrupt_after(11)
    first = run(store, runner=runner, interrupt=interrupt)
    store.save_session(SavedSession(first.session, "x", "x", state='{"trials": []}'))
    with pytest.raises(base.RecordError, match="saved state cannot be read"):
        run(store)


def test_callbacks_follow_the_session() -> None:
    listener = Listener()
    result = run(MemoryStore(), callbacks=(listener,), options=session.Options(round_size=10))
    names = [one.phase.name for one in listener.seen]
    assert names == ["WARM_UP", "WARM_UP", "SEARCH", "SEARCH", "SEARCH", "RANKING", "DONE"]
    assert [one.trials for one in listener.seen] == [0, 2, 12, 22, 30, 30, 30]
    last = listener.seen[-1]
    assert [each.best_s for each in last.tasks] == [task.best_s for task in result.tasks]
    assert listener.is_closed
    assert last.best_s == sum(task.task.weight * task.best_s for task in result.tasks)


def test_the_callers_tools_stay_open() -> None:
    builder, runner = FakeBuilder(), FakeRunner()
    run(MemoryStore(), builder=builder, runner=runner)
    assert not builder.is_closed
    assert not runner.is_closed


def test_candidates_race_against_the_best_so_far() -> None:
    class Watching(FakeRunner):
        bests: list[tuple[str, float]] = []  # noqa: RUF012 - one instance

        def measure(self, workload, kernels, threads, best_s, should_stop):  # type: ignore[no-untyped-def]
            self.bests.append((workload.key, best_s))
            return super().measure(workload, kernels, threads, best_s, should_stop)

    runner = Watching()
    run(MemoryStore(), runner=runner)
    for key in ("one", "two"):
        own = [best_s for name, best_s in runner.bests if name == key]
        times = [time_of(name, trace) for name, trace in runner.measured if name == key]
        assert own == [min(times[:n], default=math.inf) for n in range(len(times))]


def test_a_record_of_the_default_from_elsewhere_saves_the_warm_up() -> None:
    store = MemoryStore()
    default = "split(y, i, [8])"
    store.append([Record("one", TARGET.key, "here", 2, default, (0.5,), Status.OK)])
    runner = FakeRunner()
    result = run(store, runner=runner, tasks=TASKS[:1], trials=5)
    assert ("one", default) not in runner.measured
    assert result.tasks[0].default_s == 0.5


def test_a_session_that_fails_closes_what_it_opened() -> None:
    class Falling(FakeRunner):
        def measure(self, *_: object) -> None:  # type: ignore[override]
            raise KeyboardInterrupt

    store, listener = MemoryStore(), Listener()
    with pytest.raises(KeyboardInterrupt):
        run(store, runner=Falling(), callbacks=(listener,))
    assert listener.is_closed
    assert run(store).trials == 30


def test_a_default_that_was_only_dropped_before_is_measured() -> None:
    store = MemoryStore()
    default = "split(y, i, [8])"
    store.append([Record("one", TARGET.key, "here", 2, default, (0.5,), Status.CENSORED)])
    result = run(store, tasks=TASKS[:1], trials=5)
    assert result.tasks[0].default_s == time_of("one", default)


def test_failures_on_record_are_still_named_when_nothing_new_is_tried() -> None:
    store = MemoryStore()
    default = "split(y, i, [8])"
    failed = Record("one", TARGET.key, "here", 2, default, (), Status.CRASHED, error="it fell")
    store.append([failed])
    result = run(store, tasks=TASKS[:1], trials=0)
    assert result.tasks[0].error == "crashed: it fell"


# The same decisions again


def measured_by(store: MemoryStore, **changes: object) -> list[tuple[str, str]]:
    runner = FakeRunner()
    run(store, runner=runner, trials=70, **changes)
    return runner.measured


def test_equal_seeds_and_measurements_give_equal_decisions() -> None:
    assert measured_by(MemoryStore()) == measured_by(MemoryStore())
    assert measured_by(MemoryStore()) != measured_by(MemoryStore(), seed=1)


@pytest.mark.parametrize("count", [2, 18, 34, 50])
def test_a_session_killed_between_rounds_goes_on_as_if_nothing_had_been(count: int) -> None:
    class Killed(FakeRunner):
        def measure(self, *arguments: object) -> list[Measurement] | None:
            if len(self.measured) >= count:
                raise KeyboardInterrupt
            return super().measure(*arguments)  # type: ignore[arg-type]

    store, killed = MemoryStore(), Killed()
    with pytest.raises(KeyboardInterrupt):
        run(store, runner=killed, trials=70)
    assert killed.measured + measured_by(store) == measured_by(MemoryStore())


# Where the budget goes, and when it ends early


def test_a_session_out_of_patience_ends() -> None:
    options = session.Options(should_rank=False, patience=2, round_size=4)
    listener = Listener()
    result = run(MemoryStore(), trials=80, options=options, callbacks=(listener,))
    assert result.reason is session.StopReason.NO_GAIN
    assert 10 <= result.trials < 80
    *_, before, _, _, last = [each.best_s for each in listener.seen]
    assert last >= 0.999 * before


def test_patience_counts_over_an_interruption() -> None:
    options = session.Options(should_rank=False, patience=3, round_size=4)
    whole, parts = MemoryStore(), MemoryStore()
    run(whole, trials=80, options=options)
    for number in range(1, 20):
        interrupt, runner = interrupt_after(6 if number == 1 else 4)
        again = run(parts, trials=80, options=options, interrupt=interrupt, runner=runner)
        if not again.is_interrupted:
            break
    assert number > 3
    assert traces(parts) == traces(whole)


def test_workloads_out_of_patience_end_the_session() -> None:
    options = session.Options(should_rank=False, task_patience=1, round_size=2)
    result = run(MemoryStore(), trials=80, options=options)
    assert result.reason is session.StopReason.NO_GAIN
    assert result.trials < 80


def test_progress_says_where_the_time_went_and_what_networks_take() -> None:
    listener = Listener()
    tasks = (
        Task(doubled("one"), 2.0, "a"),
        Task(doubled("two"), 1.0, "a"),
        Task(doubled("one"), 1.0, "b"),
    )
    result = run(MemoryStore(), tasks=tasks, callbacks=(listener,))
    last = listener.seen[-1]
    one_s, two_s = (task.best_s for task in result.tasks)
    assert dict(last.latencies_s) == pytest.approx({"a": 2 * one_s + two_s, "b": one_s})
    assert last.search_s > 0
    assert last.search_s + last.build_s + last.measure_s <= last.elapsed_here_s
    assert (result.search_s, result.build_s) == (last.search_s, last.build_s)


def test_an_objective_steers_the_rounds() -> None:
    tasks = (Task(doubled("one"), 1.0, "a"), Task(doubled("two"), 1.0, "b"))
    met = LatencyRequirement((("a", 1.0),))
    result = run(MemoryStore(), tasks=tasks, trials=34, objective=met)
    assert [task.trials for task in result.tasks] == [1, 33]


def test_untuned_workloads_are_named_with_their_share() -> None:
    result = run(MemoryStore(), trials=10)
    counts = [task.trials for task in result.tasks]
    assert min(counts) == 1
    ((untuned, share),) = result.untuned
    assert untuned.trials == 1
    total_s = sum(task.task.weight * task.best_s for task in result.tasks)
    assert share == pytest.approx(untuned.task.weight * untuned.best_s / total_s)
    assert run(MemoryStore()).untuned == ()


# What other machines and older versions knew


def elsewhere(number: int, time_s: float = 0.001, **changes: object) -> Record:
    trace = f"split(y, i, [{number}])"
    record = Record(
        "one", TARGET.key, "x86_64-2c-avx2-11111111", 2, trace, (time_s,), Status.OK, seed=99
    )
    return replace(record, **changes)  # type: ignore[arg-type]


HERE = "x86_64-4c-avx2-22222222"


def test_good_schedules_of_a_like_machine_are_measured_first_and_not_believed() -> None:
    store, runner = MemoryStore(), FakeRunner()
    store.append([elsewhere(n, 1e-9 * n) for n in (3, 5, 6)])
    result = run(store, runner=runner, hardware=HERE)
    assert [number_of(trace) for _, trace in runner.measured[:4]] == [8, 8, 3, 5]
    assert all(task.best_s >= 0.001 for task in result.tasks)
    assert store.count(hardware=HERE) == 30


def test_an_older_version_is_a_seed_too_and_comes_first() -> None:
    store, runner = MemoryStore(), FakeRunner()
    old = elsewhere(7, 1e-9, hardware=HERE, tool_version="0.0.1")
    store.append([elsewhere(3), elsewhere(4, threads=1, hardware=HERE), old])
    result = run(store, runner=runner, hardware=HERE, tasks=TASKS[:1], trials=6)
    assert [number_of(trace) for _, trace in runner.measured[:4]] == [8, 7, 4, 3]
    assert result.tasks[0].best_s >= 0.001


def test_other_kinds_of_machines_and_failures_are_no_seeds() -> None:
    store = MemoryStore()
    other = replace(elsewhere(3), hardware="aarch64-2c-sve-11111111", target="aarch64-sve")
    store.append([other, elsewhere(4, status=Status.CRASHED, times_s=(), error="it fell")])
    assert seeds_of(store, setting(HERE), TASKS[0].workload, 4) == ()


def test_seeds_are_tried_once() -> None:
    store = MemoryStore()
    store.append([elsewhere(3), elsewhere(5)])
    run(store, hardware=HERE, tasks=TASKS[:1], trials=3)
    assert seeds_of(store, setting(HERE), TASKS[0].workload, 4) == ()


def setting(hardware: str) -> Setting:
    return Setting(TARGET, 2, hardware)


# Drift


def test_the_best_is_measured_again_after_some_rounds() -> None:
    class Slowing(FakeRunner):
        """The machine takes twice as long after 20 measurements."""

        def _one(self, workload, trace):  # type: ignore[no-untyped-def]
            found = super()._one(workload, trace)
            factor = 2.0 if len(self.measured) > 20 else 1.0
            return replace(found, times_s=tuple(factor * one for one in found.times_s))

    store, listener = MemoryStore(), Listener()
    options = session.Options(should_rank=False, round_size=4, recheck_rounds=3)
    result = run(store, options=options, runner=Slowing(), callbacks=(listener,), trials=60)
    drifts = [each.drift for each in listener.seen if each.drift is not None]
    assert any(one.now_s / one.before_s == pytest.approx(2.0) for one in drifts)
    assert {one.key for one in drifts} <= {"one", "two"}
    assert result.trials == 60
    assert store.count() > 60
    again = [trace for trace, count in Counter(traces(store)).items() if count > 1]
    assert again


def test_a_disturbed_measurement_of_the_best_is_repeated() -> None:
    class Disturbed(FakeRunner):
        """Something else runs whenever a program is measured for the second time."""

        def _one(self, workload, trace):  # type: ignore[no-untyped-def]
            found = super()._one(workload, trace)
            times = sum(one == trace for _, one in self.measured)
            factor = 3.0 if times == 2 else 1.0
            return replace(found, times_s=tuple(factor * one for one in found.times_s))

    store, listener = MemoryStore(), Listener()
    options = session.Options(should_rank=False, round_size=4, recheck_rounds=3)
    run(store, options=options, runner=Disturbed(), callbacks=(listener,), trials=60)
    assert any(count > 1 for count in Counter(traces(store)).values())
    drifts = [each.drift for each in listener.seen if each.drift is not None]
    assert drifts
    assert all(one.now_s == pytest.approx(one.before_s) for one in drifts)


def test_a_search_that_fails_costs_its_workload_only() -> None:
    class Failing(RandomSearch):
        def propose(self, count: int) -> tuple[Candidate, ...]:
            raise base.UserError(stage="tune", where="search", reason="it does not work")

    def make(task: Task, space: Space, seed: int) -> Strategy:
        return (Failing if task.workload.key == "one" else RandomSearch)(task, space, seed)

    with pytest.warns(RuntimeWarning, match="the search of workload one has failed"):
        result = run(MemoryStore(), make_strategy=make)
    assert [task.trials for task in result.tasks] == [1, 29]
