"""The schedules that were best inside a network, kept as a session of the record store.

A schedule of an open network has the range of sizes of each of its traces.  The choice for a
workload is valid until the workload is measured again.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace

from tensorwright.base import ScheduleError, Target, UsageError
from tensorwright.graph import Partition
from tensorwright.records.session import SavedSession, session_id
from tensorwright.records.store import RecordStore
from tensorwright.schedule import Schedule, parse_schedule

_KIND = "choice in a network"


@dataclass(frozen=True, slots=True)
class NetworkChoice:
    """A schedule for each workload, and the time of the network with these schedules.

    traces           (workload key, trace text)
    thread_limits    (workload key, the most threads on which it runs; 0 for all), for workloads
                     whose limit was measured; an estimate decides for the others
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
    """Keep a choice, which replaces the one before."""
    arguments = _arguments(parts, target, hardware, threads)
    limits = dict(choice.thread_limits)
    state = {"traces": dict(choice.traces), "seconds": choice.now_s, "thread_limits": limits}
    model, identity = parts.graph.name, session_id(arguments)
    store.renew_session(
        SavedSession(identity, f"choice in {model}", model, arguments, json.dumps(state))
    )


def load_choice(
    store: RecordStore, parts: Partition, target: Target, hardware: str, threads: int
) -> dict[str, Schedule]:
    """The traces chosen for a network, by workload key.

    Workloads that were measured later are left out, and texts that this version cannot read.
    """
    saved = _saved(store, parts, target, hardware, threads)
    if saved is None:
        return {}
    still_best: dict[str, Schedule] = {}
    for key, trace in _chosen(saved).items():
        best = store.best(workload=key, target=target.key, hardware=hardware, threads=threads)
        if best is None or best.when <= saved.updated:
            still_best[key] = trace
    return still_best


def load_last_choice(
    store: RecordStore, parts: Partition, target: Target, hardware: str, threads: int
) -> dict[str, Schedule]:
    """As `load_choice`, including workloads that were measured later."""
    saved = _saved(store, parts, target, hardware, threads)
    return {} if saved is None else _chosen(saved)


def forget_workloads(store: RecordStore, keys: Collection[str]) -> None:
    """Remove workloads from every choice, so that no choice for them is used."""
    for session in store.sessions():
        if f'"kind": "{_KIND}"' not in session.arguments:
            continue
        try:
            state = json.loads(session.state)
        except ValueError:  # another version wrote it, and this one does not use it
            continue
        for part in ("traces", "thread_limits"):
            state[part] = {k: v for k, v in state.get(part, {}).items() if k not in keys}
        store.save_session(replace(session, state=json.dumps(state)))


def load_thread_limits(
    store: RecordStore, parts: Partition, target: Target, hardware: str, threads: int
) -> dict[str, int]:
    """The most threads of each workload whose chosen trace is still valid."""
    saved = _saved(store, parts, target, hardware, threads)
    if saved is None:
        return {}
    holding = load_choice(store, parts, target, hardware, threads)
    try:
        limits = json.loads(saved.state).get("thread_limits", {})
        return {key: int(limits[key]) for key in holding if key in limits}
    except (ValueError, TypeError, AttributeError):
        return {}


def _chosen(saved: SavedSession) -> dict[str, Schedule]:
    """The saved traces; none if this version cannot read them."""
    try:
        texts = json.loads(saved.state)["traces"]
        return {str(key): parse_schedule(str(text)) for key, text in texts.items()}
    except (ValueError, KeyError, TypeError, AttributeError, UsageError, ScheduleError):
        return {}


def _saved(
    store: RecordStore, parts: Partition, target: Target, hardware: str, threads: int
) -> SavedSession | None:
    identity = session_id(_arguments(parts, target, hardware, threads))
    return store.session(identity)


def _arguments(parts: Partition, target: Target, hardware: str, threads: int) -> str:
    fields = {
        "kind": _KIND,
        "workloads": {workload.key: parts.count(workload) for workload in parts.workloads},
        "target": target.key,
        "hardware": hardware,
        "threads": threads,
    }
    return json.dumps(fields, sort_keys=True)
