"""The arguments of a session in groups: setting, budget, search, parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

from tensorwright.base import Target, UsageError
from tensorwright.farm import Farm
from tensorwright.tuning.learning import USUAL, Learning
from tensorwright.tuning.measuring.builder import Builder
from tensorwright.tuning.measuring.runner import Runner
from tensorwright.tuning.session.interrupt import Interrupt
from tensorwright.tuning.session.progress import Callback
from tensorwright.tuning.space.sketch import Space
from tensorwright.tuning.space.space import SpaceKind
from tensorwright.tuning.strategies.named import USUAL_STRATEGY, StrategyChoice
from tensorwright.tuning.strategies.sources import ProposingModel
from tensorwright.tuning.strategies.strategy import StrategyFactory
from tensorwright.tuning.task import Task
from tensorwright.tuning.task_scheduling.objective import Objective
from tensorwright.tuning.task_scheduling.scheduler import Scheduler

ROUND_SIZE = 16


@dataclass(frozen=True, slots=True)
class SessionSetting:
    """The fields that all records of a session share; `hardware` is this machine's if ""."""

    target: Target
    threads: int
    hardware: str = ""

    def filters(self, workload: str) -> dict[str, Any]:
        """The filters with which a record store gives the records of a workload."""
        return {
            "workload": workload,
            "target": self.target.key,
            "hardware": self.hardware,
            "threads": self.threads,
        }


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget of all runs of a session together; the limit that is reached first counts."""

    minutes: float | None = None
    trials: int | None = None

    def __post_init__(self) -> None:
        """Refuse numbers that are not amounts.

        Raises:  UsageError
        """
        amounts: dict[str, Any] = {"minutes": self.minutes, "trials": self.trials}
        for name, amount in amounts.items():
            if amount is not None and not (isinstance(amount, Real) and float(amount) >= 0):
                raise UsageError(
                    stage="tune",
                    where=f"{name}={amount}",
                    reason="it must be a number, 0 or more",
                    remedy=f"{name}=10, or {name}=None for no limit",
                )

    @property
    def seconds(self) -> float | None:
        """The minutes, in seconds."""
        return None if self.minutes is None else 60.0 * self.minutes

    @property
    def is_open(self) -> bool:
        """Whether there is no limit at all."""
        return self.minutes is None and self.trials is None


@dataclass(frozen=True, slots=True)
class TuneOptions:
    """How a session searches; the defaults suit most sessions.

    round_size      candidates of a round
    should_resume   whether an unfinished session of the same arguments continues
    should_rank     whether the best few are measured again at the end
    patience        rounds without a gain of the whole after which the session ends; never if 0
    task_patience   rounds without a gain after which a workload gets no more rounds; never if 0
    recheck_rounds  rounds after which the best schedule of a workload is measured again; never
                    if 0
    seeds           most schedules from elsewhere that are tried for a workload before the search
    after_s         seconds of the minutes that are kept for later work of the caller
    compared_later  keys of workloads that the caller compares later: without a trial they are not
                    measured again at the end
    strategy        what proposes schedules: a name of `STRATEGIES`, or settings of one of them
    proposing       a model from which populations and chains start
    """

    round_size: int = ROUND_SIZE
    should_resume: bool = True
    should_rank: bool = True
    patience: int = 0
    task_patience: int = 0
    recheck_rounds: int = 8
    seeds: int = 4
    after_s: float = 0.0
    compared_later: frozenset[str] = frozenset()
    strategy: StrategyChoice = USUAL_STRATEGY
    proposing: ProposingModel | None = None


@dataclass(frozen=True, slots=True)
class SearchArguments:
    """How to search, and the callbacks.

    seed         of every random choice; the knob `seed` if None
    objective    the number that the scheduler makes small; the weighted sum of all times if None
    interrupt    lets another thread stop the session; Ctrl-C does so in the main thread
    keeps_model  whether the cost model starts from earlier sessions, and is kept for later ones, in
                 a file beside the store (`kept_model.py`)
    learning     the features of programs, and the cost model
    space        whether sketches, templates or both are tried
    farm         whose workers build and measure; this machine does if None
    """

    budget: Budget = Budget()
    seed: int | None = None
    callbacks: tuple[Callback, ...] = ()
    options: TuneOptions = TuneOptions()
    objective: Objective | None = None
    interrupt: Interrupt | None = None
    keeps_model: bool = False
    learning: Learning = USUAL
    space: SpaceKind = SpaceKind.SKETCHES
    farm: Farm | None = None


@dataclass(frozen=True, slots=True)
class SessionParts:
    """SessionParts of a session that replace the default ones.

    builder, runner   closed by the caller; by default the session has its workers
    make_strategy     the search of each task; by default that of the options
    make_space        the schedules of each task; by default those of `Search.space`
    """

    builder: Builder | None = None
    runner: Runner | None = None
    scheduler: Scheduler | None = None
    make_strategy: StrategyFactory | None = None
    make_space: Callable[[Task, Target], Space] | None = None
