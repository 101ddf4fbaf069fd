"""The rounds of a session: warm-up, search and ranking.

The records reach the store after every round, so that a killed session loses only the round in
progress.  Ctrl-C keeps even the measurements of that round.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tensorwright.artifacts import Kernel, build_request
from tensorwright.records import Record, RecordStore, Setting, Status, session_id
from tensorwright.schedule import Workload
from tensorwright.tuning.learning import Prediction, save_predictions, trace_digest
from tensorwright.tuning.measuring.runner import BuildFailed, BuildResult, BuildStopped, Trial
from tensorwright.tuning.population.population import Candidate
from tensorwright.tuning.session import arguments
from tensorwright.tuning.session.progress import Drift, Interrupt, Phase, Progress
from tensorwright.tuning.session.ranking import (
    Ranking,
    Tools,
    best_of_alike,
    records_of,
    renewed,
    top_of,
)
from tensorwright.tuning.session.result import StopReason, TuneResult
from tensorwright.tuning.session.task_search import TaskSearch, costliest_first, open_search
from tensorwright.tuning.task import Task
from tensorwright.tuning.task_scheduling import TaskState

_RESERVE_SHARE = 0.15  # the largest share of the minutes that is kept for the ranking at the end
_RESERVE_S = 1.6
_RESERVE_PER_TASK_S = 0.4
_SUSPICIOUS = 1.2  # times as long as before: something else may have run meanwhile
_ASKED_AHEAD = 24  # the most expensive workloads, whose races are ordered by promised gain
_LEAST_GAIN = 1e-3  # the share of the whole that a round must gain to count

Pair = tuple[TaskSearch, Candidate]


class Session:
    """Mutable; lives inside one call of `tune`, which explains the arguments."""

    def __init__(
        self,
        tasks: tuple[Task, ...],
        setting: Setting,
        store: RecordStore,
        options: arguments.Options,
        tools: Tools,
        name: str,
    ) -> None:
        self.setting = setting
        self.store = store
        self.options = options
        self.seed = options.chosen_seed
        self.tools = tools
        self.name = name
        self.interrupt = options.interrupt or Interrupt()
        self.arguments = options.identity(tasks, setting)
        self.identity = session_id(self.arguments)
        spent = (
            arguments.load_spent(store, self.identity)
            if self.options.should_resume
            else arguments.Spent()
        )
        reserve_s = 0.0  # the expected seconds of the ranking at the end
        if options.seconds is not None and options.should_rank:
            expected_s = _RESERVE_S + _RESERVE_PER_TASK_S * len(tasks)
            reserve_s = min(_RESERVE_SHARE * options.seconds, expected_s)
        self.budget = arguments.Spending(options, spent, reserve_s)
        self.rounds = spent.rounds
        self.idle_rounds = spent.idle_rounds
        self.begun = spent.begun  # candidates of a round that was cut short
        self.drift: Drift | None = None
        self._ahead: list[TaskSearch] = []
        with self.budget.counting(arguments.Activity.SEARCH):
            self.searches = [self._open(task, spent) for task in tasks]

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
            self.budget.trials,
            self.budget.elapsed_s,
            self.budget.seconds(arguments.Activity.BUILD),
            self.budget.seconds(arguments.Activity.MEASURE),
            tuple(search.result(self.store, self.setting) for search in self.searches),
            self.budget.seconds(arguments.Activity.SEARCH),
            is_kept=not self.store.has_lost_its_file,
        )

    def _open(self, task: Task, spent: arguments.Spent) -> TaskSearch:
        key = task.workload.key
        state = TaskState(
            task,
            trials=dict(spent.counts).get(key, 0),
            history=dict(spent.histories).get(key, ()),
        )
        return open_search(
            state, self.tools, self.store, self.setting, self.seed, self.options.seeds
        )

    # Rounds

    def _warm_up(self) -> None:
        """Measure the default schedules that are not on record, then schedules from elsewhere.

        The most expensive by prediction come first; workloads that cost next to nothing wait for
        their first round.
        """
        searches = costliest_first(self.searches)
        defaults = [
            (search, search.default)
            for search in searches
            if search.default is not None and not search.is_default_known
        ]
        self._ahead = searches[:_ASKED_AHEAD]
        self._measure_all(defaults)
        self._ask_elites()
        self._measure_all([(search, seed) for search in searches for seed in search.seeds])

    def _ask_elites(self) -> None:
        """Predict the elites of the most expensive workloads, if that was not done during
        building: the promised gain decides which workload is first.
        """
        self._ahead = [search for search in self._ahead if search.is_before_race]
        background_jobs = [each for search in self._ahead if (each := search.elites_job())]
        if background_jobs and not self._should_stop():
            with self.budget.counting(arguments.Activity.BUILD):
                self.tools.builder.build((), self._should_stop, background_jobs)
        with self.budget.counting(arguments.Activity.SEARCH):
            for search in self._ahead:
                if self._should_stop():
                    return
                search.ask_elites()

    def _measure_all(self, pairs: Sequence[Pair]) -> None:
        """Measure candidates of many workloads in each round."""
        size = max(self.options.round_size, 1)
        for start in range(0, len(pairs), size):
            if self._should_stop() or self.budget.is_spent:
                return
            self._round(pairs[start : start + size], Phase.WARM_UP)

    def _search(self) -> StopReason:
        while True:
            if self.interrupt.is_set:
                return StopReason.INTERRUPTED
            if self.budget.is_spent:
                return StopReason.BUDGET_SPENT
            if 0 < self.options.patience <= self.idle_rounds:
                return StopReason.NO_GAIN
            with self.budget.counting(arguments.Activity.SEARCH):
                chosen = self.tools.scheduler.choose([search.state for search in self.searches])
            if chosen is None:
                is_all = all(search.state.is_exhausted for search in self.searches)
                return StopReason.EXHAUSTED if is_all else StopReason.NO_GAIN
            self._search_round(self.searches[chosen])

    def _search_round(self, search: TaskSearch) -> None:
        before = self._whole()
        with self.budget.counting(arguments.Activity.SEARCH):
            size = max(1, self.options.round_size - self.begun)
            records = records_of(self.store, self.setting, search.key)
            tried = frozenset(record.trace for record in records)
            alike: tuple[Candidate, ...] = ()  # of workloads that are the same but for their sizes
            if search.is_before_race:
                task = search.state.task
                count = self.options.seeds
                alike = best_of_alike(self.store, self.setting, task.workload, task.alike, count)
            racers = search.race(tried, alike)
            room = self.budget.room(size)
            candidates = racers[:room] or search.propose(room)
        if not candidates:
            search.state.is_exhausted = True
            return
        if not racers:
            self._recheck(search)
        count = self._round([(search, each) for each in candidates], Phase.SEARCH)
        self.begun += count
        is_whole = count == len(candidates) if racers else self.begun >= self.options.round_size
        if self._should_stop() and not is_whole:
            self._save(is_finished=False)
            return  # cut short: the next run begins with the rest
        self.begun = 0
        search.state.history = (*search.state.history, search.state.best_s)
        gained = self._whole() < (1 - _LEAST_GAIN) * before or not math.isfinite(before)
        self.idle_rounds = 0 if gained else self.idle_rounds + 1
        self._save(is_finished=False)

    def _round(self, pairs: Sequence[Pair], phase: Phase) -> int:
        """Build all, measure one after the other, and store the records.

        Returns:  how many; fewer than all if the session has to stop.
        """
        requests = [
            build_request(search.state.task.workload, candidate.trace, self.setting.target)
            for search, candidate in pairs
        ]
        with self.budget.counting(arguments.Activity.BUILD):
            background_jobs = [each for search in self._ahead if (each := search.elites_job())]
            results = self.tools.builder.build(requests, self._should_stop, background_jobs)
        measured: list[tuple[int, TaskSearch, Record]] = []
        with (
            self.tools.runner.turn(self._should_stop) as is_held,
            self.budget.counting(arguments.Activity.MEASURE),
        ):
            for index, record in self._tried_each(pairs, results) if is_held else ():
                search, candidate = pairs[index]
                measured.append((index, search, record))
                self.budget.trials_here += 1
                search.note(candidate, record)
        measured.sort(key=lambda each: each[0])
        self._keep([(search, record) for _, search, record in measured])
        self._keep_predictions([pairs[index] for index, _, _ in measured])
        self.rounds += 1
        self._save(is_finished=False)
        self._tell(phase)
        return len(measured)

    def _tried_each(
        self, pairs: Sequence[Pair], results: Sequence[BuildResult]
    ) -> Iterator[tuple[int, Record]]:
        """The records of built candidates with their positions, as they come; ends early if the
        session has to stop.
        """
        failed: list[tuple[int, Record]] = []
        for trial, one in self.tools.runner.measure_each(
            self._trials(pairs, results, failed), self._should_abandon, len(pairs)
        ):
            yield from failed
            failed.clear()
            search, candidate = pairs[trial.index]
            yield (
                trial.index,
                self._record(search, candidate, one.status, one.times_s, one.error),
            )
        yield from failed

    def _trials(
        self,
        pairs: Sequence[Pair],
        results: Sequence[BuildResult],
        failed: list[tuple[int, Record]],
    ) -> Iterator[Trial]:
        """The candidates to measure; records of those that were not built go to `failed`."""
        for index, ((search, candidate), result) in enumerate(zip(pairs, results, strict=True)):
            if self._should_stop() or isinstance(result, BuildStopped):
                return
            if isinstance(result, BuildFailed):
                record = self._record(search, candidate, result.status, (), result.error)
                failed.append((index, record))
                continue
            races = search.default is None or candidate.trace != search.default_trace
            best_s = search.state.best_s if races else math.inf
            workload = search.state.task.workload
            yield Trial(index, workload, result, self.setting.threads, best_s)

    def _recheck(self, search: TaskSearch) -> None:
        """Measure the best schedule again if its measurement is old: the others race against it,
        and it may have been lucky, or the machine may have become slower.
        """
        top = top_of(self.store, self.setting, search.key, 1)
        every = self.options.recheck_rounds
        if not every or not top or 0 <= self.rounds - top[0].round < every:
            return
        workload = search.state.task.workload
        request = build_request(workload, top[0].trace, self.setting.target)
        with self.budget.counting(arguments.Activity.BUILD):
            (result,) = self.tools.builder.build([request], self._should_stop)
        if not isinstance(result, Kernel):
            return
        fresh = self._measured_again(workload, result, top[0])
        is_timed = fresh is not None and fresh.status is Status.OK and top[0].status is Status.OK
        if fresh is not None and is_timed and fresh.median_s > _SUSPICIOUS * top[0].median_s:
            second = self._measured_again(workload, result, top[0])
            if second is not None and second.status is Status.OK:
                fresh = min(fresh, second, key=lambda record: record.median_s)
        if fresh is None:
            return
        self.store.append([replace(fresh, round=self.rounds)])
        if fresh.status is Status.OK:
            self.drift = Drift(workload.name, workload.key, top[0].median_s, fresh.median_s)
        search.read_times(self.store, self.setting)

    def _measured_again(self, workload: Workload, built: Kernel, record: Record) -> Record | None:
        """A record with new times of its kernel; None if it could not be measured."""
        with (
            self.tools.runner.turn(self._should_stop) as is_held,
            self.budget.counting(arguments.Activity.MEASURE),
        ):
            measured = is_held and self.tools.runner.measure(
                workload, [built], self.setting.threads, math.inf, self._should_abandon
            )
        return renewed(record, measured[0]) if measured else None

    def _record(
        self,
        search: TaskSearch,
        candidate: Candidate,
        status: Status,
        times_s: tuple[float, ...],
        error: str,
    ) -> Record:
        return Record(
            **self.setting.filters(search.key),
            trace=candidate.trace,
            times_s=times_s,
            status=status,
            error=error.encode(errors="replace").decode(),
            decisions=candidate.decisions,
            seed=self.seed,
            round=self.rounds,
        )

    def _keep(self, measured: Sequence[tuple[TaskSearch, Record]]) -> None:
        """Append to the store, then tell the strategies."""
        texts = [text for search, _ in measured for text in search.texts]
        self.store.append([record for _, record in measured], texts)
        with self.budget.counting(arguments.Activity.SEARCH):
            for search in self.searches:
                own = [record for owner, record in measured if owner is search]
                if own and search.strategy is not None:
                    search.strategy.observe(own)

    def _keep_predictions(self, measured: Sequence[Pair]) -> None:
        """Keep what was expected of the candidates of a round."""
        of_key: dict[str, list[Prediction]] = {}
        for search, candidate in measured:
            if candidate.predicted_s is not None:
                digest = trace_digest(candidate.trace)
                prediction = Prediction(digest, self.rounds, candidate.predicted_s)
                of_key.setdefault(search.key, []).append(prediction)
        for key, predictions in of_key.items():
            save_predictions(self.store, key, self.setting, predictions)

    def _rank(self) -> None:
        """Measure the best few of every workload again, in turns; the most expensive first."""
        ranking = Ranking(self.setting, self.store, self.tools, self._should_end)
        for search in sorted(self.searches, key=lambda each: -each.state.cost_s):
            if self._should_end():
                return
            is_due = search.state.trials or search.key not in self.options.compared_later
            if is_due and search.default is not None:
                workload = search.state.task.workload
                search.ranked = ranking.rank(workload, search.default_trace)
            search.read_times(self.store, self.setting)

    # Budget and state

    def _whole(self) -> float:
        """The weighted time of the whole; infinite if a measurable workload has no time."""
        return math.fsum(
            search.state.cost_s
            for search in self.searches
            if math.isfinite(search.state.cost_s) or not search.state.is_exhausted
        )

    def _should_stop(self) -> bool:
        """Whether the round in progress has to end early."""
        return self.interrupt.is_set or self.budget.is_late

    def _should_abandon(self) -> bool:
        """Whether even the measurement in progress has to end."""
        return self.interrupt.is_set

    def _should_end(self) -> bool:
        """Whether the ranking has to end."""
        return self.interrupt.is_set or self.budget.is_over

    def _save(self, *, is_finished: bool) -> None:
        states = [search.state for search in self.searches]
        spent = arguments.Spent(
            self.budget.trials,
            self.budget.elapsed_s,
            self.rounds,
            is_finished,
            tuple((state.task.workload.key, state.trials) for state in states),
            tuple((state.task.workload.key, state.history) for state in states),
            self.idle_rounds,
            self.begun,
        )
        arguments.save_spent(self.store, self.identity, self.name, self.arguments, spent)

    def _tell(self, phase: Phase) -> None:
        budget = self.budget
        progress = Progress(
            phase,
            self.rounds,
            budget.trials,
            budget.elapsed_s,
            budget.trials_here,
            budget.elapsed_here_s,
            self.options.trials,
            self.options.seconds,
            tuple(replace(search.state) for search in self.searches),
            budget.seconds(arguments.Activity.SEARCH),
            budget.seconds(arguments.Activity.BUILD),
            budget.seconds(arguments.Activity.MEASURE),
            self.drift,
        )
        for callback in self.options.callbacks:
            callback.on_progress(progress)
