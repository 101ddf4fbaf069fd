"""The results of a session, as values.

A speed-up is the quotient of two times that were measured in turns, so that a disturbance affects
both equally.  Times on record may be minutes or days apart, and their quotient claims nothing.

The last comparison of a search: the untuned and the tuned network in turns.

A schedule is chosen because it looked fast, so the times of the choice are too good; and times on
record come from other moments.  Here the two networks take new turns, as a whole and step by step,
and speed-ups are claimed from these times only.
"""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from statistics import median
from typing import Self

from tensorwright import graph
from tensorwright.processes import never
from tensorwright.runtime import Bound, Executable
from tensorwright.runtime.measuring import faster_half
from tensorwright.tuning.task import Task


class StopReason(Enum):
    """Why a session ended."""

    BUDGET_SPENT = "the budget is spent"
    INTERRUPTED = "interrupted"
    EXHAUSTED = "nothing is left to try"
    NO_GAIN = "the last rounds gained nothing"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The seconds of the untuned and the tuned program, in turns.

    least, most   the range of the speed-up, from the faster half of the turns of each
    is_same       whether nothing was better than the untuned program, which stays
    """

    untuned_s: float
    tuned_s: float
    least: float
    most: float
    is_same: bool = False

    @classmethod
    def of(cls, untuned: Sequence[float], tuned: Sequence[float]) -> Self:
        """From the faster half of the turns of each, because other load only adds time."""
        least, most = min(untuned) / max(tuned), max(untuned) / min(tuned)
        return cls(median(untuned), median(tuned), least, most)

    @classmethod
    def of_same(cls, times: Sequence[float]) -> Self:
        """The comparison of an unchanged program with itself."""
        return cls(median(times), median(times), 1.0, 1.0, is_same=True)

    @property
    def as_untuned(self) -> Self:
        """The comparison if the untuned program stays."""
        return replace(self, tuned_s=self.untuned_s, least=1.0, most=1.0, is_same=True)

    @property
    def speed_up(self) -> float:
        """Untuned over tuned: above 1 if tuning has gained something."""
        return self.untuned_s / self.tuned_s

    @property
    def is_sure(self) -> bool:
        """Whether one program is faster by more than the turns differ."""
        return not self.least <= 1 <= self.most

    def __str__(self) -> str:
        return f"{self.speed_up:.2f}x ({self.least:.2f} to {self.most:.2f})"


@dataclass(frozen=True, slots=True)
class NetworkResult:
    """The result for a whole network.

    whole      untuned and tuned; None if they were not compared
    workloads  (key, comparison of one of its calls in the running network)
    traces     (key, text of the chosen schedule)
    reason     why there was no comparison, "" otherwise
    at         of an open network, the sizes for which it ran, "" otherwise
    """

    name: str
    whole: Comparison | None = None
    workloads: tuple[tuple[str, Comparison], ...] = ()
    traces: tuple[tuple[str, str], ...] = ()
    reason: str = ""
    at: str = ""

    @property
    def is_slower(self) -> bool:
        """Whether the tuned network is slower by more than the turns differ."""
        return self.whole is not None and self.whole.most < 1

    def as_untuned(self, traces: Mapping[str, str]) -> Self:
        """The result if the untuned network stays, with these schedules."""
        whole = None if self.whole is None else self.whole.as_untuned
        workloads = tuple((key, compared.as_untuned) for key, compared in self.workloads)
        return replace(self, whole=whole, workloads=workloads, traces=tuple(sorted(traces.items())))


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The result for one workload; times in seconds per call, infinite without a measurement.

    default_s, best_s   times on record, measured at different moments
    trace      the schedule that is the best alone, "" without an OK record
    error      why there is no OK record, "" otherwise
    tried      schedules on record beside the default
    compared   the default schedule and the best in turns: inside the network if one was tuned,
               otherwise alone; None without turns
    taken      the schedule that was compared: that of the network; alone, the best that took
               turns; without a comparison, `trace`
    earlier    the schedules that were on record before this run
    is_default_earlier   whether the time of the default schedule was on record before this run
    cut        how many candidates were not built because the device would refuse them: pairs
               (what is too much, count)
    """

    task: Task
    trials: int
    default_s: float
    best_s: float
    trace: str
    error: str
    tried: int = 0
    compared: Comparison | None = None
    taken: str = ""
    earlier: frozenset[str] = frozenset()
    is_default_earlier: bool = False
    cut: tuple[tuple[str, int], ...] = ()

    @property
    def is_from_earlier(self) -> bool:
        """Whether an earlier run measured the chosen schedule or, without a comparison in this run,
        one of the times.
        """
        if self.compared is not None:
            return not self.compared.is_same and self.taken in self.earlier
        return self.is_default_earlier or self.trace in self.earlier

    @property
    def speed_up(self) -> float:
        """Default over best if they took turns, otherwise NaN."""
        return math.nan if self.compared is None else self.compared.speed_up

    @property
    def is_untuned(self) -> bool:
        """Whether the default schedule is the only one."""
        return self.tried == 0

    @property
    def times_s(self) -> tuple[float, float]:
        """Untuned and tuned seconds: of the last comparison, or otherwise of records."""
        if self.compared is not None:
            return self.compared.untuned_s, self.compared.tuned_s
        return self.default_s, self.best_s

    @property
    def cost_s(self) -> float:
        """The workload's part of the time of the whole; 0 if it was not measured."""
        tuned_s = self.times_s[1]
        return self.task.call_count * tuned_s if math.isfinite(tuned_s) else 0.0


@dataclass(frozen=True, slots=True)
class TuneResult:
    """The result of a session.

    trials, elapsed_s    of all runs of the session
    search_s, build_s, measure_s   of this run
    networks             each tuned network as a whole
    is_kept              whether its records are on the disk, so that it can continue
    """

    session: str
    reason: StopReason
    trials: int
    elapsed_s: float
    build_s: float
    measure_s: float
    tasks: tuple[TaskResult, ...]
    search_s: float = 0.0
    networks: tuple[NetworkResult, ...] = ()
    is_kept: bool = True

    def with_networks(self, networks: Sequence[NetworkResult]) -> Self:
        """The result with networks; their workloads have the times inside the networks."""
        of_key: dict[str, list[Comparison]] = {}
        taken: dict[str, str] = {}
        for network in networks:
            taken |= dict(network.traces)
            for key, compared in network.workloads:
                of_key.setdefault(key, []).append(compared)
        tasks = tuple(
            replace(each, compared=_together(of_key[key]), taken=taken.get(key, each.taken))
            if (key := each.task.workload.key) in of_key
            else each
            for each in self.tasks
        )
        return replace(self, tasks=tasks, networks=tuple(networks))

    @property
    def untuned(self) -> tuple[tuple[TaskResult, float], ...]:
        """The workloads without a search, and their share of the measured time, largest first."""
        total_s = sum(each.cost_s for each in self.tasks) or 1.0
        shares = [(each, each.cost_s / total_s) for each in self.tasks if each.is_untuned]
        return tuple(sorted(shares, key=lambda pair: -pair[1]))

    @property
    def cut(self) -> tuple[tuple[str, int], ...]:
        """How many candidates of all workloads the device would have refused: pairs (what is too
        much, count), the most first.
        """
        counts: Counter[str] = Counter()
        for each in self.tasks:
            counts.update(dict(each.cut))
        return tuple(pair for pair in counts.most_common() if pair[1])

    @property
    def is_interrupted(self) -> bool:
        """Whether the session can continue where it stopped."""
        return self.reason is StopReason.INTERRUPTED

    @property
    def resume_text(self) -> str:
        """How the user can continue; "" if the session is finished."""
        return self._stopped("command") if self.is_interrupted else ""

    def raise_if_interrupted(self) -> None:
        """End a call from Python as Ctrl-C ends others, after it has printed how to continue."""
        if self.is_interrupted:
            print(self._stopped("call"), file=sys.stderr)
            raise KeyboardInterrupt

    def _stopped(self, what: str) -> str:
        if not self.is_kept:
            return (
                f"stopped after {self.trials} trials; the disk was full, so the {what} starts anew"
            )
        kept = f"stopped after {self.trials} trials, all of them kept (session {self.session})"
        return f"{kept};\nthe same {what} continues"


def _together(comparisons: Sequence[Comparison]) -> Comparison:
    """The comparison of one workload in several networks: the mean of its times."""
    count = len(comparisons)
    return Comparison(
        math.fsum(each.untuned_s for each in comparisons) / count,
        math.fsum(each.tuned_s for each in comparisons) / count,
        min(each.least for each in comparisons),
        max(each.most for each in comparisons),
        all(each.is_same for each in comparisons),
    )


_TURNS = 40
_LEAST_TURNS = 5
TOO_SHORT = "the time was too short"


@dataclass(slots=True)
class Samples:
    """Seconds of a program, one number for each of its turns; mutable.

    workloads   key -> seconds of all its calls together
    """

    whole: list[float] = field(default_factory=list)
    workloads: dict[str, list[float]] = field(default_factory=dict)


def compare_with_untuned(
    parts: graph.Partition,
    untuned: Executable,
    tuned: Executable,
    schedules: tuple[Mapping[str, str], Mapping[str, str]],
    limit_s: float,
    should_stop: Callable[[], bool] = never,
) -> NetworkResult:
    """Both programs of a network in turns, as a whole and workload by workload.

    tuned     is the untuned program if nothing was faster
    schedules   of both, by workload key: equal ones show that a workload was not changed
    limit_s   about how long it may take; if a few turns do not end within twice that time, there
              is no comparison
    """
    name = parts.graph.name
    samples = take_turns(parts, (untuned, tuned), limit_s, should_stop)
    if samples is None:
        return NetworkResult(name, reason="stopped" if should_stop() else TOO_SHORT)
    before, after = samples
    of_whole = _same if tuned is untuned else _different
    counts = {workload.key: parts.count(workload) for workload in parts.workloads}
    workloads = []
    for key, times in before.workloads.items():
        of_one = _same if schedules[0][key] == schedules[1][key] else _different
        compared = of_one(times, after.workloads[key])
        untuned_s, tuned_s = compared.untuned_s / counts[key], compared.tuned_s / counts[key]
        workloads.append((key, replace(compared, untuned_s=untuned_s, tuned_s=tuned_s)))
    taken = tuple(sorted(schedules[1].items()))
    return NetworkResult(name, of_whole(before.whole, after.whole), tuple(workloads), taken)


def compare_programs(
    parts: graph.Partition, untuned: Executable, tuned: Executable, limit_s: float
) -> NetworkResult:
    """As `compare_with_untuned`, but only as a whole: the steps of the two may differ."""
    samples = take_turns(parts, (untuned, tuned), limit_s, never)
    if samples is None:
        return NetworkResult(parts.graph.name, reason=TOO_SHORT)
    before, after = samples
    return NetworkResult(parts.graph.name, _different(before.whole, after.whole))


def workloads_of_steps(parts: graph.Partition) -> list[str]:
    """The key of the workload of each step of a plan, "" for the host; copies come after them."""
    return [
        step.workload.key if isinstance(step, graph.KernelCall) else ""
        for step in parts.steps
        if not isinstance(step, graph.AliasCall | graph.ConcatInPlace)
    ]


def take_turns(
    parts: graph.Partition,
    programs: Sequence[Executable],
    limit_s: float,
    should_stop: Callable[[], bool],
) -> list[Samples] | None:
    """The samples of each; None if the first turn shows that a few turns take too long."""
    inputs = graph.random_inputs(parts.graph)
    keys = workloads_of_steps(parts)
    runs = [program.bind(dict(inputs)) for program in programs]
    samples = [Samples() for _ in programs]
    started = time.monotonic()
    for number in range(_TURNS):
        pairs = list(zip(runs, samples, strict=True))
        for run, taken in pairs if number % 2 == 0 else reversed(pairs):
            if should_stop():
                return None
            _take_turn(run, keys, taken)
        passed_s = time.monotonic() - started
        if number == 0 and _LEAST_TURNS * passed_s > 2 * limit_s:
            return None
        if number + 1 >= _LEAST_TURNS and passed_s > limit_s:
            break
    return samples


def _take_turn(run: Bound, keys: Sequence[str], taken: Samples) -> None:
    run.run()
    taken.whole.append(run.run_seconds())
    totals: dict[str, list[float]] = {}
    for key, time_s in zip(keys, run.run_timed(), strict=False):
        totals.setdefault(key, []).append(time_s)
    for key in filter(None, totals):
        taken.workloads.setdefault(key, []).append(math.fsum(totals[key]))


def _different(before: Sequence[float], after: Sequence[float]) -> Comparison:
    return Comparison.of(faster_half(before), faster_half(after))


def _same(before: Sequence[float], after: Sequence[float]) -> Comparison:
    return Comparison.of_same(faster_half([*before, *after]))
