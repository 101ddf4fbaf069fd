"""The search of one workload inside a session: its state, its strategy, its records."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial

from tensorwright.base import TensorwrightError
from tensorwright.processes import Job
from tensorwright.records import Record, RecordStore, Setting, Status, WorkloadText
from tensorwright.schedule import format_trace
from tensorwright.tuning.measuring.runner import BackgroundJob
from tensorwright.tuning.population.population import Candidate, default_candidate
from tensorwright.tuning.selection import Elite, Predictor, TopQuestion
from tensorwright.tuning.session import ranking
from tensorwright.tuning.session.result import TaskResult
from tensorwright.tuning.space import Space
from tensorwright.tuning.strategies.strategy import Strategy
from tensorwright.tuning.task_scheduling import TaskState

_RACERS = 8  # schedules that a model expects to be fast, in the first round of a workload
_LEAST_SHARE = 0.01  # of the predicted time of the whole: a larger share is measured immediately
_MOST_FAILURES = 48  # trials without an OK record after which a workload is given up


@dataclass(slots=True)
class TaskSearch:
    """The state of one task, and its strategy; mutable.

    strategy           made on its first use: a short session does not reach most of them
    make_strategy      makes it, and tells it the records; None if the task has no space
    make_by_rule       makes the heuristic schedule, which races beside the elites, because
                       predictions may be far off
    predictor          predicts schedules for the first round; None without a time model
    elites         the schedules that it expects to be fast; None before it was asked
    seeds              schedules from elsewhere that wait to be measured
    is_default_known   whether the default schedule need not be measured any more
    is_default_measured   whether it was measured in this run
    earlier            traces that were on record before this run
    ranked             the best that took turns at the end, against the default schedule
    space              of the strategy; None before that is made
    """

    state: TaskState
    default: Candidate | None = None
    strategy: Strategy | None = None
    make_strategy: Callable[[], Strategy] | None = None
    make_by_rule: Callable[[], Candidate] | None = None
    predictor: Predictor | None = None
    elites: tuple[Elite, ...] | None = None
    seeds: tuple[Candidate, ...] = ()
    texts: list[WorkloadText] = field(default_factory=list)
    is_default_known: bool = False
    earlier: frozenset[str] = frozenset()
    ranked: ranking.Ranked | None = None
    is_default_measured: bool = False
    space: Space | None = None

    @property
    def key(self) -> str:
        """The key of the workload."""
        return self.state.task.workload.key

    @property
    def default_trace(self) -> str:
        """The default schedule as text; "" if the task has no space."""
        return self.default.trace if self.default is not None else ""

    def race(self, tried: Set[str], of_alike: Sequence[Candidate] = ()) -> tuple[Candidate, ...]:
        """The schedules of the first round: the default and schedules from elsewhere, if they were
        not measured before, then the elites.  Empty without a model, or after the first round.

        tried      traces on record
        of_alike   schedules of workloads that are the same but for their sizes
        """
        if not self.is_before_race:
            return ()
        first = () if self.is_default_known or self.default is None else (self.default,)
        taken = tried | {each.trace for each in first}
        others = [*self.seeds, *of_alike]
        with suppress(TensorwrightError):
            others += [self.make_by_rule()] if self.make_by_rule is not None else []
        others += [each.candidate for each in self.ask_elites()]
        new = {each.trace: each for each in reversed(others) if each.trace not in taken}
        return (*first, *reversed(new.values()))

    @property
    def is_before_race(self) -> bool:
        """Whether its first round has not begun, and is a race."""
        return self.predictor is not None and not self.state.history

    def ask_elites(self) -> tuple[Elite, ...]:
        """The schedules that are expected to be fast; none without a model."""
        if self.elites is None:
            elites: tuple[Elite, ...] = ()
            if self.predictor is not None:
                with suppress(TensorwrightError):
                    elites = self.predictor.top(self.state.task.workload, _RACERS)
            self.take_elites(elites)
        return self.elites or ()

    def take_elites(self, elites: tuple[Elite, ...]) -> None:
        """Note the elites: the more they promise, the sooner they are tried."""
        self.elites = elites
        if elites:
            best = min((each.estimate for each in elites), key=lambda each: each.seconds)
            self.state.hoped_s, self.state.hoped_upper_s = best.seconds, best.upper_seconds

    def elites_job(self) -> BackgroundJob | None:
        """The job that predicts the elites in another process; None if they are known."""
        if not self.is_before_race or self.predictor is None or self.elites is not None:
            return None
        question = self.predictor.top_question(self.state.task.workload, _RACERS)
        return BackgroundJob(Job(_answer, (question,)), self.take_elites)

    def propose(self, count: int) -> tuple[Candidate, ...]:
        """The strategy's proposals; if it fails, the task is given up with a warning."""
        self.open_strategy()
        if self.strategy is None:
            return ()
        try:
            return self.strategy.propose(count)
        except TensorwrightError as error:
            text = f"the search of workload {self.state.task.workload.name} has failed: {error}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
            return ()

    def open_strategy(self) -> None:
        """Make the strategy now; if that fails, the task is exhausted, and its error says why."""
        if self.strategy is not None or self.make_strategy is None:
            return
        try:
            self.strategy = self.make_strategy()
        except TensorwrightError as error:
            self.give_up(error)

    def give_up(self, error: TensorwrightError) -> None:
        """Note that the task has no space."""
        self.state.error = f"no schedule space: {error}"
        self.state.is_exhausted = True
        self.make_strategy = None

    def note(self, candidate: Candidate, record: Record) -> None:
        """Let the state follow a record; the next candidate races against it."""
        state = self.state
        state.trials += 1
        if record.status is Status.OK:
            state.best_s = min(state.best_s, record.median_s)
            state.error = ""
        elif not math.isfinite(state.best_s) and record.error:
            state.error = failure_text(record)
        if candidate.trace == self.default_trace:
            self.is_default_known = self.is_default_measured = True
            if record.status is Status.OK:
                state.default_s = record.median_s
        if state.trials >= _MOST_FAILURES and not math.isfinite(state.best_s):
            state.is_exhausted = True

    def read_times(self, store: RecordStore, setting: Setting) -> None:
        """The default and the best time in the store."""
        top = ranking.top_of(store, setting, self.key, 1)
        self.state.best_s = top[0].median_s if top else math.inf
        if top:
            self.state.error = ""
        default = ranking.standing(ranking.records_of(store, setting, self.key), self.default_trace)
        self.state.default_s = default.median_s if default is not None else math.inf

    def result(self, store: RecordStore, setting: Setting) -> TaskResult:
        """The result of the task."""
        top = ranking.top_of(store, setting, self.key, 1)
        others = {each.trace for each in ranking.records_of(store, setting, self.key)}
        state, best = self.state, top[0].trace if top else ""
        return TaskResult(
            state.task,
            state.trials,
            state.default_s,
            state.best_s,
            best,
            state.error,
            len(others - {self.default_trace}),
            self.ranked.compared if self.ranked is not None else None,
            self.ranked.trace if self.ranked is not None else best,
            self.earlier,
            not self.is_default_measured and math.isfinite(state.default_s),
            () if self.space is None else tuple(self.space.cut.most_common()),
        )


def _answer(question: TopQuestion) -> tuple[Elite, ...]:
    return question.answer()


def open_search(
    state: TaskState,
    tools: ranking.Tools,
    store: RecordStore,
    setting: Setting,
    seed: int,
    count: int,
) -> TaskSearch:
    """Make the strategy of a task, and tell it the records.

    seed    of its random choices
    count   the most schedules from elsewhere to try
    """
    task = state.task
    key = task.workload.key
    search = TaskSearch(state, texts=[WorkloadText.of(task.workload)])
    make_space = cache(lambda: tools.make_space(task, setting.target))
    try:
        search.default = _default(state, make_space, tools, setting)
    except TensorwrightError as error:
        search.give_up(error)
        return search

    def make_strategy() -> Strategy:
        search.space = make_space()
        strategy = tools.make_strategy(task, search.space, seed)
        strategy.observe(ranking.records_of(store, setting, key))
        return strategy

    search.make_strategy = make_strategy
    search.predictor = tools.predictor if tools.has_races else None
    if search.predictor is not None and tools.make_default is not None:
        search.make_by_rule = partial(tools.make_default, task, setting.target)
    records = ranking.records_of(store, setting, key)
    search.earlier = frozenset(one.trace for one in records)
    if records:
        search.open_strategy()
    search.is_default_known = any(
        one.trace == search.default_trace and one.status is not Status.CENSORED for one in records
    )
    seeds = ranking.seeds_of(store, setting, task.workload, count) if count else ()
    search.seeds = tuple(each for each in seeds if each.trace != search.default_trace)
    search.read_times(store, setting)
    if records and not math.isfinite(state.best_s):
        state.error = failure_text(records[-1])
    return search


def _default(
    state: TaskState, make_space: Callable[[], Space], tools: ranking.Tools, setting: Setting
) -> Candidate:
    """The schedule of the untuned workload; its state gets the predicted time."""
    if tools.predictor is None:
        if tools.make_default is None:
            return default_candidate(make_space())
        return tools.make_default(state.task, setting.target)
    chosen = tools.predictor.best(state.task.workload)
    candidate = Candidate(format_trace(chosen.trace), decisions=chosen.decisions)
    if chosen.estimate is None:
        return candidate
    state.predicted_s = chosen.estimate.seconds
    state.upper_s = chosen.estimate.upper_seconds
    return replace(candidate, predicted_s=chosen.estimate.seconds)


def failure_text(record: Record) -> str:
    """Why a record has no times."""
    return f"{record.status.value}: {record.error}"


def costliest_first(searches: Sequence[TaskSearch]) -> list[TaskSearch]:
    """The searches whose workloads may matter, the most expensive by prediction first.

    Workloads are left out if they are next to nothing of the whole even at the time that is
    exceeded once in ten times.  Without predictions all stay in their order.
    """
    costs = [search.state.task.weight * search.state.predicted_s for search in searches]
    whole_s = math.fsum(cost for cost in costs if math.isfinite(cost))
    chosen = [
        n
        for n, search in enumerate(searches)
        if not search.state.task.weight * search.state.upper_s < _LEAST_SHARE * whole_s
    ]
    return [searches[n] for n in sorted(chosen, key=lambda n: -costs[n])]
