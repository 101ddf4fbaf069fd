"""The schedules that were best inside a network, kept beside the records.

They are stored as a session of the store.  A choice holds until one of its workloads is measured
again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass, replace

from tensorwright.base import Target, UsageError, now_utc
from tensorwright.graph import Partition
from tensorwright.records.session import SavedSession
from tensorwright.records.store import RecordStore
from tensorwright.schedule import Trace, parse_trace

_KIND = "choice in a network"


@dataclass(frozen=True, slots=True)
class NetworkChoice:
    """A schedule for each workload, and what the network takes with it.

    traces           (workload key, trace text)
    thread_limits    (workload key, on how many threads it runs at most; all where 0), of those that
                     were measured; others by estimate
    before_s, now_s  median seconds of a run with the first option of each, and with the choice
    """

    traces: tuple[tuple[str, str], ...]
    before_s: float
    now_s: float
    thread_limits: tuple[tuple[str, int], ...] = ()


def save_choice(
    store: RecordStore,
    parts: Partition,
    target: Target,
    hardware: str,
    threads: int,
    choice: NetworkChoice,
) -> None:
    """Keep a choice, replacing the one before."""
    identity, arguments = _identity(parts, target, hardware, threads)
    limits = dict(choice.thread_limits)
    state = json.dumps(
        {"traces": dict(choice.traces), "seconds": choice.now_s, "thread_limits": limits}
    )
    model = parts.graph.name
    session = SavedSession(identity, f"choice in {model}", model, arguments, state)
    before = store.session(identity)
    if before is not None and before.id == identity:
        session = replace(session, started=before.started, updated=now_utc())
    store.save_session(session)


def load_choice(
    store: RecordStore, parts: Partition, target: Target, hardware: str, threads: int
) -> dict[str, Trace]:
    """The traces chosen for a network, by workload key; those measured since are left out.

    So are texts that this version cannot read.
    """
    saved = _saved(store, parts, target, hardware, threads)
    if saved is None:
        return {}
    still_best: dict[str, Trace] = {}
    for key, trace in _chosen(saved).items():
        best = store.best(workload=key, target=target.key, hardware=hardware, threads=threads)
        if best is None or best.when <= saved.updated:
            still_best[key] = trace
    return still_best


def load_last_choice(
    store: RecordStore, parts: Partition, target: Target, hardware: str, threads: int
) -> dict[str, Trace]:
    """As `load_choice`, with those that were measured since."""
    saved = _saved(store, parts, target, hardware, threads)
    return {} if saved is None else _chosen(saved)


def forget_workloads(store: RecordStore, keys: Collection[str]) -> None:
    """Take workloads out of every choice, so that nothing that was measured of them is used."""
    for session in store.sessions():
        if f'"kind": "{_KIND}"' not in session.arguments:
            continue
        try:
            state = json.loads(session.state)
        except ValueError:  # of a version that this one cannot read, nor uses
            continue
        for part in ("traces", "thread_limits"):
            state[part] = {k: v for k, v in state.get(part, {}).items() if k not in keys}
        store.save_session(replace(session, state=json.dumps(state)))


def load_thread_limits(
    store: RecordStore, parts: Partition, target: Target, hardware: str, threads: int
) -> dict[str, int]:
    """On how many threads workloads run at most, of those whose chosen trace still holds."""
    saved = _saved(store, parts, target, hardware, threads)
    if saved is None:
        return {}
    holding = load_choice(store, parts, target, hardware, threads)
    try:
        limits = json.loads(saved.state).get("thread_limits", {})
        return {key: int(limits[key]) for key in holding if key in limits}
    except (ValueError, TypeError, AttributeError):
        return {}


def _chosen(saved: SavedSession) -> dict[str, Trace]:
    """The traces of what was saved; none where this version cannot read them."""
    try:
        texts = json.loads(saved.state)["traces"]
        return {str(key): parse_trace(str(text)) for key, text in texts.items()}
    except (ValueError, KeyError, TypeError, AttributeError, UsageError):
        return {}


def _saved(
    store: RecordStore, parts: Partition, target: Target, hardware: str, threads: int
) -> SavedSession | None:
    identity, _ = _identity(parts, target, hardware, threads)
    return next((each for each in store.sessions() if each.id == identity), None)


def _identity(parts: Partition, target: Target, hardware: str, threads: int) -> tuple[str, str]:
    fields = {
        "kind": _KIND,
        "workloads": {workload.key: parts.count(workload) for workload in parts.workloads},
        "target": target.key,
        "hardware": hardware,
        "threads": threads,
    }
    arguments = json.dumps(fields, sort_keys=True)
    return hashlib.sha256(arguments.encode()).hexdigest()[:16], arguments
