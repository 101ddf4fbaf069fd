"""What a cost model expected of measured candidates, as sessions of the record store.

A session of the store holds those of one workload on one machine.  A record has the measured time
only; the expectation exists only while a candidate is proposed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from tensorwright.records import RecordStore, SavedSession, session_id

_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Prediction:
    """The prediction for a candidate.

    trace     the candidate, as `trace_digest` names it
    round     of the session that measured it: those of one round come from one state of the model
    seconds   per call.  A model that learns in a session learns ranks: then only quotients within
              a round mean something
    """

    trace: str
    round: int
    seconds: float


def trace_digest(trace: str) -> str:
    """A short name of the text of a trace."""
    return hashlib.sha256(trace.encode()).hexdigest()[:_DIGITS]


def save_predictions(
    store: RecordStore,
    workload: str,
    target: str,
    hardware: str,
    threads: int,
    predictions: Sequence[Prediction],
) -> None:
    """Add the predictions for candidates of a workload; the first of a candidate stays."""
    arguments = _arguments(workload, target, hardware, threads)
    earlier = {
        each.trace: each for each in load_predictions(store, workload, target, hardware, threads)
    }
    every = {each.trace: each for each in predictions} | earlier
    state = {each.trace: [each.round, each.seconds] for each in every.values()}
    name = f"predictions of {workload}"
    store.renew_session(SavedSession(session_id(arguments), name, "", arguments, json.dumps(state)))


def load_predictions(
    store: RecordStore, workload: str, target: str, hardware: str, threads: int
) -> tuple[Prediction, ...]:
    """The predictions for candidates of a workload; none if this version cannot read them."""
    identity = session_id(_arguments(workload, target, hardware, threads))
    state = next((each.state for each in store.sessions() if each.id == identity), "{}")
    try:
        return tuple(
            Prediction(str(trace), int(number), float(seconds))
            for trace, (number, seconds) in json.loads(state).items()
        )
    except (ValueError, TypeError, AttributeError):
        return ()


def _arguments(workload: str, target: str, hardware: str, threads: int) -> str:
    fields = {
        "kind": "predictions",
        "workload": workload,
        "target": target,
        "hardware": hardware,
        "threads": threads,
    }
    return json.dumps(fields, sort_keys=True)
