"""The rounds of a session: warm-up, search, ranking, and what is kept after each.

Records reach the store after every round, so that a killed session loses the round in flight and
no more; Ctrl-C keeps even what that round has measured.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from tensorwright.base import TensorwrightError
from tensorwright.records import Record, RecordStore, Status, WorkloadText
from tensorwright.tune.build import BuildFailed, BuildResult, BuildStopped, Built, build_request
from tensorwright.tune.interrupt import Interrupt
from tensorwright.tune.measure import hold_turn
from tensorwright.tune.progress import Callback, Phase, Progress, TaskRow
from tensorwright.tune.random_search import default_candidate
from tensorwright.tune.ranking import Ranking, Tools, records_of, standing, top_of
from tensorwright.tune.result import Setting, StopReason, TaskResult, TuneOptions, TuneResult
from tensorwright.tune.saved_state import (
    Spent,
    load_spent,
    save_spent,
    session_arguments,
    session_id,
)
from tensorwright.tune.scheduler import TaskState
from tensorwright.tune.strategy import Candidate, Strategy
from tensorwright.tune.task import Task

_MOST_FAILURES = 48  # after so many trials without a good one, a workload is given up
_RESERVE_SHARE = 0.08  # of the minutes, kept for the ranking at the end
_RESERVE_PER_TASK_S = 1.0


@dataclass(slots=True)
class _Search:
    """The search of one task: where it stands, and its strategy (None where it has no space)."""

    state: TaskState
    default: Candidate | None = None
    strategy: Strategy | None = None
    texts: list[WorkloadText] = field(default_factory=list)
    is_default_known: bool = False


class Session:
    """Mutable; lives inside one call of `tune`, which explains the arguments."""

    def __init__(
        self,
        tasks: tuple[Task, ...],
        setting: Setting,
        store: RecordStore,
        tools: Tools,
        callbacks: tuple[Callback, ...],
        interrupt: Interrupt,
        options: TuneOptions,
    ) -> None:
        self.setting = setting
        self.store = store
        self.tools = tools
        self.callbacks = callbacks
        self.interrupt = interrupt
        self.options = options
        self.started = time.monotonic()
        self.arguments = session_arguments(
            tasks, setting.target.key, setting.hardware, setting.threads, setting.seed
        )
        self.identity = session_id(self.arguments)
        self.spent = load_spent(store, self.identity) if options.should_resume else Spent()
        self.trials_here = 0
        self.build_s = 0.0
        self.measure_s = 0.0
        self.rounds = self.spent.rounds
        self.searches = [self._open(task) for task in tasks]

    def run(self) -> TuneResult:
        """The whole session."""
        self._tell(Phase.WARM_UP)
        self._warm_up()
        reason = self._search()
        if reason is not StopReason.INTERRUPTED and self.options.should_rank:
            self._tell(Phase.RANKING)
            self._rank()
            if self.interrupt.is_set:
                reason = StopReason.INTERRUPTED
        self._save(is_finished=reason is not StopReason.INTERRUPTED)
        self._tell(Phase.DONE)
        return TuneResult(
            self.identity,
            reason,
            self._trials(),
            self._elapsed_s(),
            self.build_s,
            self.measure_s,
            tuple(self._result(search) for search in self.searches),
        )

    # Setting up

    def _open(self, task: Task) -> _Search:
        """Make the strategy of a task, and tell it what is on record."""
        key = task.workload.key
        state = TaskState(
            task,
            trials=dict(self.spent.counts).get(key, 0),
            history=dict(self.spent.histories).get(key, ()),
        )
        search = _Search(state, texts=[WorkloadText(key, str(task.workload))])
        try:
            space = self.tools.make_space(task, self.setting.target)
            search.default = default_candidate(space)
            search.strategy = self.tools.make_strategy(task, space, self.setting.seed)
        except TensorwrightError as error:
            state.error = f"no schedule space: {error}"
            state.is_exhausted = True
            return search
        known = records_of(self.store, self.setting, key)
        search.strategy.observe(known)
        search.is_default_known = any(
            one.trace == search.default.trace and one.status is not Status.CENSORED for one in known
        )
        self._read_times(search)
        if known and not math.isfinite(state.best_s):
            state.error = _failure_text(known[-1])
        return search

    def _read_times(self, search: _Search) -> None:
        """Default and best time, as the store has them."""
        key = search.state.task.workload.key
        top = top_of(self.store, self.setting, key, 1)
        search.state.best_s = top[0].median_s if top else math.inf
        if top:
            search.state.error = ""
        trace = search.default.trace if search.default is not None else ""
        default = standing(records_of(self.store, self.setting, key), trace)
        search.state.default_s = default.median_s if default is not None else math.inf

    # Rounds

    def _warm_up(self) -> None:
        """Measure the default schedules that are not on record, many workloads to a round."""
        waiting = [
            (search, search.default)
            for search in self.searches
            if search.default is not None and not search.is_default_known
        ]
        size = max(self.options.round_size, 1)
        for start in range(0, len(waiting), size):
            if self._should_stop() or self._is_spent():
                return
            self._round(waiting[start : start + size], Phase.WARM_UP)

    def _search(self) -> StopReason:
        states = [search.state for search in self.searches]
        while True:
            if self.interrupt.is_set:
                return StopReason.INTERRUPTED
            if self._is_spent():
                return StopReason.BUDGET_SPENT
            chosen = self.tools.scheduler.choose(states)
            if chosen is None:
                return StopReason.EXHAUSTED
            search = self.searches[chosen]
            candidates = search.strategy.propose(self._room()) if search.strategy else ()
            if not candidates:
                search.state.is_exhausted = True
                continue
            self._round([(search, candidate) for candidate in candidates], Phase.SEARCH)
            search.state.history = (*search.state.history, search.state.best_s)
            self._save(is_finished=False)

    def _round(self, pairs: Sequence[tuple[_Search, Candidate]], phase: Phase) -> None:
        """Build all, measure one after the other, and put what came of it into the store."""
        requests = [
            build_request(search.state.task.workload, candidate.trace, self.setting.target)
            for search, candidate in pairs
        ]
        start = time.monotonic()
        results = self.tools.builder.build(requests, self._should_stop)
        self.build_s += time.monotonic() - start
        found: list[tuple[_Search, Record]] = []
        with hold_turn(self._should_stop) as is_held:
            start = time.monotonic()
            if is_held:
                for (search, candidate), result in zip(pairs, results, strict=True):
                    record = self._try(search, candidate, result)
                    if record is None:
                        break
                    found.append((search, record))
                    self._note(search, candidate, record)
            self.measure_s += time.monotonic() - start
        self._keep(found)
        self.rounds += 1
        self._save(is_finished=False)
        self._tell(phase)

    def _try(self, search: _Search, candidate: Candidate, result: BuildResult) -> Record | None:
        """Measure a candidate that was built; None where the session shall stop."""
        if self._should_stop():
            return None
        match result:
            case BuildStopped():
                return None
            case BuildFailed(status, error):
                return self._record(search, candidate, status, (), error)
            case Built():
                races = search.default is None or candidate.trace != search.default.trace
                measured = self.tools.runner.measure(
                    search.state.task.workload,
                    [result],
                    self.setting.threads,
                    search.state.best_s if races else math.inf,
                    self._should_abandon,
                )
                if not measured:
                    return None
                one = measured[0]
                return self._record(search, candidate, one.status, one.times_s, one.error)

    def _record(
        self,
        search: _Search,
        candidate: Candidate,
        status: Status,
        times_s: tuple[float, ...],
        error: str,
    ) -> Record:
        return Record(
            workload=search.state.task.workload.key,
            target=self.setting.target.key,
            hardware=self.setting.hardware,
            threads=self.setting.threads,
            trace=candidate.trace,
            times_s=times_s,
            status=status,
            error=error.encode(errors="replace").decode(),
            decisions=candidate.decisions,
            seed=self.setting.seed,
            round=self.rounds,
        )

    def _note(self, search: _Search, candidate: Candidate, record: Record) -> None:
        """Let the state of the task follow the record; the next candidate races against it."""
        state = search.state
        state.trials += 1
        self.trials_here += 1
        if record.status is Status.OK:
            state.best_s = min(state.best_s, record.median_s)
            state.error = ""
        elif not math.isfinite(state.best_s) and record.error:
            state.error = _failure_text(record)
        if search.default is not None and candidate.trace == search.default.trace:
            search.is_default_known = True
            if record.status is Status.OK:
                state.default_s = record.median_s
        if state.trials >= _MOST_FAILURES and not math.isfinite(state.best_s):
            state.is_exhausted = True

    def _keep(self, found: Sequence[tuple[_Search, Record]]) -> None:
        """Append to the store, then tell the strategies."""
        texts = [text for search, _ in found for text in search.texts]
        self.store.append([record for _, record in found], texts)
        for search in self.searches:
            own = [record for owner, record in found if owner is search]
            if own and search.strategy is not None:
                search.strategy.observe(own)

    def _rank(self) -> None:
        """Measure the best few of every workload again, in turn."""
        ranking = Ranking(self.setting, self.store, self.tools, self._should_abandon)
        for search in self.searches:
            if self.interrupt.is_set:
                return
            if search.state.trials and search.default is not None:
                ranking.rank(search.state.task.workload, search.default.trace)
            self._read_times(search)

    # Budget and state

    def _should_stop(self) -> bool:
        """Whether the round in flight shall end early."""
        seconds = self.setting.seconds
        return self.interrupt.is_set or (
            seconds is not None and self._elapsed_s() >= seconds - self._reserve_s()
        )

    def _should_abandon(self) -> bool:
        """Whether even the measurement in flight shall end."""
        return self.interrupt.is_set

    def _is_spent(self) -> bool:
        trials = self.setting.trials
        return self._should_stop() or (trials is not None and self._trials() >= trials)

    def _room(self) -> int:
        """How many candidates the next round may have."""
        size = self.options.round_size
        if self.setting.trials is None:
            return size
        return max(1, min(size, self.setting.trials - self._trials()))

    def _reserve_s(self) -> float:
        """What the ranking at the end will take."""
        if self.setting.seconds is None or not self.options.should_rank:
            return 0.0
        return min(_RESERVE_SHARE * self.setting.seconds, _RESERVE_PER_TASK_S * len(self.searches))

    def _trials(self) -> int:
        return self.spent.trials + self.trials_here

    def _elapsed_s(self) -> float:
        return self.spent.seconds + self._elapsed_here_s()

    def _elapsed_here_s(self) -> float:
        return time.monotonic() - self.started

    def _save(self, *, is_finished: bool) -> None:
        states = [search.state for search in self.searches]
        spent = Spent(
            self._trials(),
            self._elapsed_s(),
            self.rounds,
            is_finished,
            tuple((state.task.workload.key, state.trials) for state in states),
            tuple((state.task.workload.key, state.history) for state in states),
        )
        save_spent(self.store, self.identity, self.setting.model, self.arguments, spent)

    def _tell(self, phase: Phase) -> None:
        rows = tuple(_row(search.state) for search in self.searches)
        progress = Progress(
            phase,
            self.rounds,
            self._trials(),
            self._elapsed_s(),
            self.trials_here,
            self._elapsed_here_s(),
            self.setting.trials,
            self.setting.seconds,
            rows,
        )
        for callback in self.callbacks:
            callback.on_progress(progress)

    def _result(self, search: _Search) -> TaskResult:
        state = search.state
        top = top_of(self.store, self.setting, state.task.workload.key, 1)
        trace = top[0].trace if top else ""
        return TaskResult(
            state.task, state.trials, state.default_s, state.best_s, trace, state.error
        )


def _failure_text(record: Record) -> str:
    return f"{record.status.value}: {record.error}"


def _row(state: TaskState) -> TaskRow:
    return TaskRow(
        state.task.workload.name,
        state.task.weight,
        state.trials,
        state.default_s,
        state.best_s,
        state.error,
    )
