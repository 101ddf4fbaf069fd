"""The results of a session, as values.

A speed-up is the quotient of two times that were measured in turns, so that a disturbance affects
both equally.  Times on record may be minutes or days apart, and their quotient claims nothing.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from statistics import median
from typing import Self

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
