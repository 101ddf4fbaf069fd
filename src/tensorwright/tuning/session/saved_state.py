"""What a tuning session keeps of itself in the record store, to go on where it stopped.

Records hold all that was measured; this holds how the budget was spent.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tensorwright.base import RecordError, now_utc
from tensorwright.records import RecordStore, SavedSession
from tensorwright.tuning.learning import Learning
from tensorwright.tuning.space.space import SpaceKind
from tensorwright.tuning.strategies.named import USUAL_STRATEGY, StrategyChoice
from tensorwright.tuning.task import Task


@dataclass(frozen=True, slots=True)
class Spent:
    """How far a session has come.

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


def session_arguments(
    tasks: Sequence[Task],
    target: str,
    hardware: str,
    threads: int,
    seed: int,
    strategy: StrategyChoice = USUAL_STRATEGY,
    learning: Learning | None = None,
    space: SpaceKind = SpaceKind.SKETCHES,
) -> str:
    """What makes two runs the same session: everything but the budget."""
    weights = {task.workload.key: task.weight for task in tasks}
    fields: dict[str, Any] = {
        "workloads": weights,
        "target": target,
        "hardware": hardware,
        "threads": threads,
        "seed": seed,
    }
    if strategy != USUAL_STRATEGY:
        fields["strategy"] = str(strategy)
    if learning is not None and not learning.is_usual:
        fields |= {"features": learning.features, "model": learning.model}
    if space is not SpaceKind.SKETCHES:
        fields["space"] = space.value
    return json.dumps(fields, sort_keys=True)


def session_id(arguments: str) -> str:
    """The name under which such a session is saved."""
    return hashlib.sha256(arguments.encode()).hexdigest()[:16]


def load_spent(store: RecordStore, identity: str) -> Spent:
    """What an unfinished session of this id has spent; nothing where there is none.

    A finished one counts as nothing: running it again is a new search, with the same records.
    Raises:  RecordError if what was saved cannot be read.
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
            remedy="start afresh, without resuming",
        ) from error
    return Spent() if spent.is_finished else spent


def save_spent(store: RecordStore, identity: str, model: str, arguments: str, spent: Spent) -> None:
    """Save, replacing what was saved before."""
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
    session = SavedSession(identity, model or "session", model, arguments, json.dumps(state))
    before = store.session(identity)
    if before is not None and before.id == identity:
        session = replace(session, started=before.started, updated=now_utc())
    store.save_session(session)
