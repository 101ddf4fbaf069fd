"""The arguments of a session in groups: setting, options, parts.

The state of a tuning session in the record store, from which it can continue.

Records hold all measurements; the state holds how the budget was spent.

The spent part of a session's budget, and where its time goes.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from numbers import Real
from typing import Any

from tensorwright.base import RecordError, Target, UsageError, knobs, option, unknown_name
from tensorwright.farm import Farm
from tensorwright.records import RecordStore, SavedSession, Setting
from tensorwright.tuning.learning import USUAL, Learning
from tensorwright.tuning.measuring.runner import Builder, Runner
from tensorwright.tuning.session.progress import Callback, Interrupt
from tensorwright.tuning.space.sketch import Space
from tensorwright.tuning.space.space import SpaceKind
from tensorwright.tuning.strategies.named import STRATEGIES, USUAL_STRATEGY, StrategyChoice
from tensorwright.tuning.strategies.sources import ProposingModel
from tensorwright.tuning.strategies.strategy import StrategyFactory
from tensorwright.tuning.task import Task
from tensorwright.tuning.task_scheduling import Objective, Scheduler

ROUND_SIZE = 16


@dataclass(frozen=True, slots=True)
class Options:
    """How a session searches, and its budget; the defaults suit most sessions.

    Python takes the fields as keywords, and commands take those that have a text.

    minutes, trials   of all runs together; the limit that is reached first counts; 0: never for
                      the numbers of rounds
    strategy        a name of `STRATEGIES`, or settings of one of them
    learning        the features of programs, and the cost model
    seed            of every random choice; the knob `seed` if None
    callbacks       get the progress; `tune` writes it to stderr where none are given
    objective       the number that the scheduler makes small; the weighted sum of all times if None
    interrupt       lets another thread stop the session; Ctrl-C does so in the main thread
    farm            whose workers build and measure; this machine does if None
    keeps_model     whether the cost model starts from earlier sessions, and is kept for later ones,
                    in a file beside the store (`tuning/learning.py`)
    round_size      candidates of a round
    should_resume   whether an unfinished session of the same arguments continues
    should_rank     whether the best few are measured again at the end
    task_patience   rounds without a gain after which a workload gets no more rounds
    recheck_rounds  rounds after which the best schedule of a workload is measured again
    seeds           most schedules from elsewhere that are tried for a workload before the search
    after_s         seconds of the minutes that are kept for later work of the caller
    compared_later  keys of workloads that the caller compares later: without a trial they are not
                    measured again at the end
    """

    minutes: float | None = option(None, "Time for tuning; by default 10.", unit="minutes")
    trials: int | None = option(None, "Candidates to measure in all.", least=1)
    patience: int = option(0, "End after this many rounds without a gain.", least=1)
    space: SpaceKind | str = option(
        SpaceKind.SKETCHES, "The schedules to try: sketches of generators, templates, or both."
    )
    strategy: StrategyChoice = option(
        USUAL_STRATEGY, f"What proposes schedules: {', '.join(STRATEGIES)}.", metavar="NAME"
    )
    proposing: ProposingModel | None = option(
        None, "Start populations and chains by a model of `pretrain proposer`.", metavar="MODEL"
    )
    learning: Learning = USUAL
    seed: int | None = None
    callbacks: tuple[Callback, ...] = ()
    objective: Objective | None = None
    interrupt: Interrupt | None = None
    farm: Farm | None = None
    keeps_model: bool = False
    round_size: int = ROUND_SIZE
    should_resume: bool = True
    should_rank: bool = True
    task_patience: int = 0
    recheck_rounds: int = 8
    seeds: int = 4
    after_s: float = 0.0
    compared_later: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Refuse numbers that are not amounts, and names of no space.

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
        kinds = {kind.value: kind for kind in SpaceKind}
        if self.space not in kinds:
            reason = "there is no space of this name"
            raise unknown_name("tune", f"space {self.space}", reason, self.space, kinds)
        object.__setattr__(self, "space", kinds[self.space])

    @property
    def seconds(self) -> float | None:
        """The minutes, in seconds."""
        return None if self.minutes is None else 60.0 * self.minutes

    @property
    def is_open(self) -> bool:
        """Whether there is no limit at all."""
        return self.minutes is None and self.trials is None

    @property
    def chosen_seed(self) -> int:
        """The seed, or that of the knob."""
        return knobs.SEED.get() if self.seed is None else self.seed

    def identity(self, tasks: Sequence[Task], setting: Setting) -> str:
        """The arguments that identify a session: everything except the budget."""
        fields: dict[str, Any] = {
            "workloads": {task.workload.key: task.weight for task in tasks},
            **setting.fields,
            "seed": self.chosen_seed,
        }
        if self.strategy != USUAL_STRATEGY:
            fields["strategy"] = str(self.strategy)
        if not self.learning.is_usual:
            fields |= {"features": self.learning.features, "model": self.learning.model}
        if self.space is not SpaceKind.SKETCHES:
            fields["space"] = str(self.space)
        return json.dumps(fields, sort_keys=True)


@dataclass(frozen=True, slots=True)
class SessionParts:
    """SessionParts of a session that replace the default ones.

    builder, runner   closed by the caller; by default the session has its workers
    make_strategy     the search of each task; by default that of the options
    make_space        the schedules of each task; by default those of `Options.space`
    """

    builder: Builder | None = None
    runner: Runner | None = None
    scheduler: Scheduler | None = None
    make_strategy: StrategyFactory | None = None
    make_space: Callable[[Task, Target], Space] | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """The progress of a session.

    counts      per workload key, its trials          histories   its best time after each round
    idle_rounds   rounds at the end that did not gain anything for the whole
    begun         candidates measured of a round that was cut short
    """

    trials: int = 0
    seconds: float = 0.0
    rounds: int = 0
    is_finished: bool = False
    counts: tuple[tuple[str, int], ...] = ()
    histories: tuple[tuple[str, tuple[float, ...]], ...] = ()
    idle_rounds: int = 0
    begun: int = 0


def load_spent(store: RecordStore, identity: str) -> Spent:
    """What an unfinished session of this id has spent; nothing if there is none.

    A finished session counts as none: running it again is a new search, with the same records.
    Raises:  RecordError if the saved state cannot be read.
    """
    saved = store.session(identity)
    if saved is None or saved.id != identity:
        return Spent()
    try:
        fields = json.loads(saved.state)
        spent = Spent(
            trials=int(fields["trials"]),
            seconds=float(fields["seconds"]),
            rounds=int(fields["rounds"]),
            is_finished=bool(fields["is_finished"]),
            counts=tuple((str(key), int(count)) for key, count in fields["counts"].items()),
            histories=tuple(
                (key, tuple(math.inf if time_s is None else float(time_s) for time_s in times))
                for key, times in fields["histories"].items()
            ),
            idle_rounds=int(fields.get("idle_rounds", 0)),
            begun=int(fields.get("begun", 0)),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordError(
            stage="tune",
            where=f"session {identity}",
            reason=f"its saved state cannot be read ({type(error).__name__}: {error})",
            remedy="start a new session, without resuming",
        ) from error
    return Spent() if spent.is_finished else spent


def save_spent(store: RecordStore, identity: str, model: str, arguments: str, spent: Spent) -> None:
    """Save the state, which replaces the one before."""
    histories = {
        key: [time_s if math.isfinite(time_s) else None for time_s in times]
        for key, times in spent.histories
    }
    state = {
        "trials": spent.trials,
        "seconds": spent.seconds,
        "rounds": spent.rounds,
        "is_finished": spent.is_finished,
        "counts": dict(spent.counts),
        "histories": histories,
        "idle_rounds": spent.idle_rounds,
        "begun": spent.begun,
    }
    store.renew_session(
        SavedSession(identity, model or "session", model, arguments, json.dumps(state))
    )


class Activity(Enum):
    """The kinds of work for which a session spends time."""

    SEARCH = "search"
    BUILD = "build"
    MEASURE = "measure"


class Spending:
    """Counts trials and seconds over all runs of a session; mutable.

    reserve_s   seconds that are kept for the ranking at the end
    """

    def __init__(self, options: Options, spent: Spent, reserve_s: float) -> None:
        self._options = options
        self._spent = spent
        self._reserve_s = reserve_s
        self._started = time.monotonic()
        self._seconds = dict.fromkeys(Activity, 0.0)
        self.trials_here = 0

    @property
    def trials(self) -> int:
        """Candidates tried in all runs."""
        return self._spent.trials + self.trials_here

    @property
    def elapsed_here_s(self) -> float:
        """Seconds of this run."""
        return time.monotonic() - self._started

    @property
    def elapsed_s(self) -> float:
        """Seconds of all runs."""
        return self._spent.seconds + self.elapsed_here_s

    @property
    def is_late(self) -> bool:
        """Whether the minutes are spent, except the seconds that are kept."""
        return self._is_past(self._reserve_s + self._options.after_s)

    @property
    def is_over(self) -> bool:
        """Whether even the ranking must end."""
        return self._is_past(self._options.after_s)

    def _is_past(self, kept_s: float) -> bool:
        seconds = self._options.seconds
        return seconds is not None and self.elapsed_s >= seconds - kept_s

    @property
    def is_spent(self) -> bool:
        """Whether no further round may begin."""
        trials = self._options.trials
        return self.is_late or (trials is not None and self.trials >= trials)

    def room(self, size: int) -> int:
        """The number of candidates of a round of `size`; at least one."""
        trials = self._options.trials
        return size if trials is None else max(1, min(size, trials - self.trials))

    @contextmanager
    def counting(self, activity: Activity) -> Iterator[None]:
        """Count the time of the block for a kind of work."""
        start = time.monotonic()
        try:
            yield
        finally:
            self._seconds[activity] += time.monotonic() - start

    def seconds(self, activity: Activity) -> float:
        """Seconds of this run for a kind of work."""
        return self._seconds[activity]
