"""What comes of a session, as values.

A speed-up is the quotient of two times that were measured in turns, at one moment: what disturbs
one disturbs the other as much.  Times on record may be minutes or days apart, and nothing is
claimed of their quotient.
"""

from __future__ import annotations

import math
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
    """What is untuned and what is tuned, each in its turns; seconds of a run.

    least, most   of the speed-up, by how much the faster half of the turns of each differ
    is_same       whether nothing was better than the untuned, which stays
    """

    untuned_s: float
    tuned_s: float
    least: float
    most: float
    is_same: bool = False

    @classmethod
    def of(cls, untuned: Sequence[float], tuned: Sequence[float]) -> Self:
        """From the faster half of the turns of each: foreign load only ever adds time."""
        least, most = min(untuned) / max(tuned), max(untuned) / min(tuned)
        return cls(median(untuned), median(tuned), least, most)

    @classmethod
    def of_same(cls, times: Sequence[float]) -> Self:
        """Of what was left as it is: it is as fast as itself."""
        return cls(median(times), median(times), 1.0, 1.0, is_same=True)

    @property
    def as_untuned(self) -> Self:
        """What it is where the untuned stays."""
        return replace(self, tuned_s=self.untuned_s, least=1.0, most=1.0, is_same=True)

    @property
    def speed_up(self) -> float:
        """Untuned over tuned: above 1 where tuning has gained something."""
        return self.untuned_s / self.tuned_s

    @property
    def is_sure(self) -> bool:
        """Whether one is faster by more than the turns differ."""
        return not self.least <= 1 <= self.most

    def __str__(self) -> str:
        return f"{self.speed_up:.2f}x ({self.least:.2f} to {self.most:.2f})"


@dataclass(frozen=True, slots=True)
class NetworkResult:
    """What came of a whole network.

    whole      it untuned and tuned; None where they were not compared
    workloads  (key, one of its calls in the running network, untuned and tuned)
    traces     (key, the schedule that is taken), as text
    reason     why they were not compared, "" otherwise
    """

    name: str
    whole: Comparison | None = None
    workloads: tuple[tuple[str, Comparison], ...] = ()
    traces: tuple[tuple[str, str], ...] = ()
    reason: str = ""

    @property
    def is_slower(self) -> bool:
        """Whether the tuned is slower, by more than the turns differ."""
        return self.whole is not None and self.whole.most < 1

    def as_untuned(self, traces: Mapping[str, str]) -> Self:
        """What it is where the untuned stays, with these schedules."""
        whole = None if self.whole is None else self.whole.as_untuned
        workloads = tuple((key, compared.as_untuned) for key, compared in self.workloads)
        return replace(self, whole=whole, workloads=workloads, traces=tuple(sorted(traces.items())))


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What came of one workload; times in seconds per call, infinite where not measured.

    default_s, best_s   as they are on record: measured at different moments
    trace      the schedule that is the best alone, "" where none was measured well
    error      why none was, "" otherwise
    tried      schedules on record besides the default
    compared   the default schedule and the best, in turns: in the network where one was tuned, else
               alone; None where they did not take turns
    taken      the schedule that was compared: what a network takes; alone, the best of those that
               took turns; where nothing was compared, `trace`
    earlier    the schedules that were on record before this run
    is_default_earlier   whether so was the time of the default one
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

    @property
    def is_from_earlier(self) -> bool:
        """Whether an earlier run has measured what is shown: the schedule that is taken, or, where
        nothing was compared in this run, one of the times.
        """
        if self.compared is not None:
            return not self.compared.is_same and self.taken in self.earlier
        return self.is_default_earlier or self.trace in self.earlier

    @property
    def speed_up(self) -> float:
        """Default over best where they took turns, else NaN."""
        return math.nan if self.compared is None else self.compared.speed_up

    @property
    def is_untuned(self) -> bool:
        """Whether there is nothing to choose from but the default schedule."""
        return self.tried == 0

    @property
    def times_s(self) -> tuple[float, float]:
        """Untuned and tuned: in the last comparison where there was one, else as on record."""
        if self.compared is not None:
            return self.compared.untuned_s, self.compared.tuned_s
        return self.default_s, self.best_s

    @property
    def cost_s(self) -> float:
        """What the workload adds to the time of the whole; 0 where it was not measured."""
        tuned_s = self.times_s[1]
        return self.task.weight * tuned_s if math.isfinite(tuned_s) else 0.0


@dataclass(frozen=True, slots=True)
class TuneResult:
    """What came of a session.

    trials, elapsed_s    of all runs of the session
    search_s, build_s, measure_s   of this run
    networks             each network as a whole, where some were tuned
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

    def with_networks(self, networks: Sequence[NetworkResult]) -> Self:
        """The result with networks; their workloads have the times that they take there."""
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
        found = [(each, each.cost_s / total_s) for each in self.tasks if each.is_untuned]
        return tuple(sorted(found, key=lambda pair: -pair[1]))

    @property
    def is_interrupted(self) -> bool:
        """Whether the session can go on where it stopped."""
        return self.reason is StopReason.INTERRUPTED

    @property
    def resume_text(self) -> str:
        """What to tell the user about going on; "" where the session is finished."""
        if not self.is_interrupted:
            return ""
        return (
            f"stopped after {self.trials} trials, all of them kept (session {self.session});\n"
            "the same command goes on"
        )


def _together(found: Sequence[Comparison]) -> Comparison:
    """One workload in several networks: the mean of its times."""
    count = len(found)
    return Comparison(
        math.fsum(each.untuned_s for each in found) / count,
        math.fsum(each.tuned_s for each in found) / count,
        min(each.least for each in found),
        max(each.most for each in found),
        all(each.is_same for each in found),
    )
