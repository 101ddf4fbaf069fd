"""The search of one workload inside a session: its state, its strategy, what the store knows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

from tensorwright.base import TensorwrightError
from tensorwright.records import Record, RecordStore, Status, WorkloadText
from tensorwright.schedule import format_trace
from tensorwright.tuning.session.arguments import Setting
from tensorwright.tuning.session.ranking import Tools
from tensorwright.tuning.session.result import TaskResult
from tensorwright.tuning.session.seeds import seeds_of
from tensorwright.tuning.session.trusted_records import records_of, standing, top_of
from tensorwright.tuning.space import Space
from tensorwright.tuning.strategies.random_search import default_candidate
from tensorwright.tuning.strategies.strategy import Candidate, Strategy
from tensorwright.tuning.task import Task
from tensorwright.tuning.task_scheduling.scheduler import TaskState

_MOST_FAILURES = 48  # after so many trials without a good one, a workload is given up


@dataclass(slots=True)
class TaskSearch:
    """Where one task stands, and its strategy (None where it has no space); mutable.

    seeds              schedules from elsewhere that wait to be measured
    is_default_known   whether the default schedule need not be measured any more
    drift              time of the best when measured again, in its earlier times
    """

    state: TaskState
    default: Candidate | None = None
    strategy: Strategy | None = None
    seeds: tuple[Candidate, ...] = ()
    texts: list[WorkloadText] = field(default_factory=list)
    is_default_known: bool = False
    drift: float = 1.0

    @property
    def key(self) -> str:
        """Of the workload."""
        return self.state.task.workload.key

    @property
    def default_trace(self) -> str:
        """The default schedule as text; "" where the task has no space."""
        return self.default.trace if self.default is not None else ""

    def propose(self, count: int) -> tuple[Candidate, ...]:
        """What the strategy proposes; where it fails, the task is given up with a warning."""
        if self.strategy is None:
            return ()
        try:
            return self.strategy.propose(count)
        except TensorwrightError as error:
            text = f"the search of workload {self.state.task.workload.name} has failed: {error}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
            return ()

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
            self.is_default_known = True
            if record.status is Status.OK:
                state.default_s = record.median_s
        if state.trials >= _MOST_FAILURES and not math.isfinite(state.best_s):
            state.is_exhausted = True

    def read_times(self, store: RecordStore, setting: Setting) -> None:
        """Default and best time, as the store has them."""
        top = top_of(store, setting, self.key, 1)
        self.state.best_s = top[0].median_s if top else math.inf
        if top:
            self.state.error = ""
        default = standing(records_of(store, setting, self.key), self.default_trace)
        self.state.default_s = default.median_s if default is not None else math.inf

    def result(self, store: RecordStore, setting: Setting) -> TaskResult:
        """What came of it."""
        top = top_of(store, setting, self.key, 1)
        others = {each.trace for each in records_of(store, setting, self.key)}
        state = self.state
        return TaskResult(
            state.task,
            state.trials,
            state.default_s,
            state.best_s,
            top[0].trace if top else "",
            state.error,
            len(others - {self.default_trace}),
        )


def open_search(
    state: TaskState, tools: Tools, store: RecordStore, setting: Setting, seed: int, count: int
) -> TaskSearch:
    """Make the strategy of a task, and tell it what is on record.

    seed    of its random choices
    count   most schedules from elsewhere that are to be tried
    """
    task = state.task
    key = task.workload.key
    search = TaskSearch(state, texts=[WorkloadText(key, str(task.workload))])
    try:
        space = tools.make_space(task, setting.target)
        search.default = _default(task, space, tools)
        search.strategy = tools.make_strategy(task, space, seed)
    except TensorwrightError as error:
        state.error = f"no schedule space: {error}"
        state.is_exhausted = True
        return search
    known = records_of(store, setting, key)
    _tell(search, known)
    seeds = seeds_of(store, setting, task.workload, count) if count else ()
    search.seeds = tuple(each for each in seeds if each.trace != search.default_trace)
    search.read_times(store, setting)
    if known and not math.isfinite(state.best_s):
        state.error = failure_text(known[-1])
    return search


def _default(task: Task, space: Space, tools: Tools) -> Candidate:
    """The schedule of the workload when it is not tuned."""
    if tools.predictor is None:
        return default_candidate(space)
    chosen = tools.predictor.best(task.workload)
    return default_candidate(space) if chosen.is_by_rule else Candidate(format_trace(chosen.trace))


def _tell(search: TaskSearch, known: Sequence[Record]) -> None:
    if search.strategy is not None:
        search.strategy.observe(known)
    search.is_default_known = any(
        one.trace == search.default_trace and one.status is not Status.CENSORED for one in known
    )


def failure_text(record: Record) -> str:
    """Why a record has no times."""
    return f"{record.status.value}: {record.error}"
