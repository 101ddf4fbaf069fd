"""Facts about whole networks, kept as sessions of a record store: choices, graphs, sizes.

The schedules that were best inside a network, kept as a session of the record store.

A schedule of an open network has the range of sizes of each of its traces.  The choice for a
workload is valid until the workload is measured again.

The certificate of a graph that is faster than a network, kept as a session of the record store.

The key of the session is the network's simplified graph, and the machine.

The sizes for which an open workload was tuned, kept as a session of the record store.

The measurements are records of the workload with these sizes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tensorwright.base import ScheduleError, UsageError
from tensorwright.graph import Graph, Partition
from tensorwright.records.record import SavedSession, Setting, session_id
from tensorwright.records.store import RecordStore
from tensorwright.schedule import Schedule, parse_schedule

_KIND = "choice in a network"


def keep_fact(
    store: RecordStore, about: Mapping[str, Any], state: str, name: str, model: str = ""
) -> None:
    """Keep a fact as a session of the store; it replaces the last one about the same.

    state   as JSON      name   for people
    """
    arguments = json.dumps(about, sort_keys=True)
    store.renew_session(SavedSession(session_id(arguments), name, model, arguments, state))


def kept_fact(store: RecordStore, about: Mapping[str, Any]) -> SavedSession | None:
    """What `keep_fact` has kept; None if nothing is kept."""
    return store.session(session_id(json.dumps(about, sort_keys=True)))


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
    store: RecordStore, parts: Partition, setting: Setting, choice: NetworkChoice
) -> None:
    """Keep a choice, which replaces the one before."""
    limits = dict(choice.thread_limits)
    state = {"traces": dict(choice.traces), "seconds": choice.now_s, "thread_limits": limits}
    model = parts.graph.name
    keep_fact(store, _about(parts, setting), json.dumps(state), f"choice in {model}", model)


def load_choice(store: RecordStore, parts: Partition, setting: Setting) -> dict[str, Schedule]:
    """The traces chosen for a network, by workload key.

    Workloads that were measured later are left out, and texts that this version cannot read.
    """
    saved = kept_fact(store, _about(parts, setting))
    if saved is None:
        return {}
    still_best: dict[str, Schedule] = {}
    for key, trace in _chosen(saved).items():
        best = store.best(**setting.filters(key))
        if best is None or best.when <= saved.updated:
            still_best[key] = trace
    return still_best


def load_last_choice(store: RecordStore, parts: Partition, setting: Setting) -> dict[str, Schedule]:
    """As `load_choice`, including workloads that were measured later."""
    saved = kept_fact(store, _about(parts, setting))
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


def load_thread_limits(store: RecordStore, parts: Partition, setting: Setting) -> dict[str, int]:
    """The most threads of each workload whose chosen trace is still valid."""
    saved = kept_fact(store, _about(parts, setting))
    if saved is None:
        return {}
    holding = load_choice(store, parts, setting)
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


def _about(parts: Partition, setting: Setting) -> dict[str, Any]:
    counts = {workload.key: parts.count(workload) for workload in parts.workloads}
    return {"kind": _KIND, "workloads": counts, **setting.fields}


_NO_CERTIFICATE = "null"


def save_rewriting(store: RecordStore, graph: Graph, setting: Setting, certificate: str) -> None:
    """Keep the certificate of a faster graph for a network; it replaces the one before.

    certificate   as JSON; "" if no graph is faster than the network itself
    """
    state = certificate or _NO_CERTIFICATE
    keep_fact(store, _about_graph(graph, setting), state, _name(graph), graph.name)


def load_rewriting(store: RecordStore, graph: Graph, setting: Setting) -> str | None:
    """The kept certificate of a simplified network; "" if no graph is faster; None without one."""
    if store.session(_name(graph)) is None:  # usual, and cheaper than a hash of all constants
        return None
    kept = kept_fact(store, _about_graph(graph, setting))
    if kept is None:
        return None
    return "" if kept.state == _NO_CERTIFICATE else kept.state


def _name(graph: Graph) -> str:
    return f"rewriting of {graph.name}"


def _about_graph(graph: Graph, setting: Setting) -> dict[str, Any]:
    digest = hashlib.sha256(str(graph).encode()).hexdigest()
    return {"kind": "rewriting", "graph": digest, **setting.fields}


_SIZES_KIND = "tuned sizes"


def save_tuned_sizes(
    store: RecordStore, workloads: Sequence[str], points: Sequence[Mapping[str, int]], model: str
) -> None:
    """Add points to the kept ones of some workloads with named sizes, by their keys."""
    about = {"kind": _SIZES_KIND, "workloads": sorted(workloads)}
    earlier = kept_fact(store, about)
    kept = [] if earlier is None else _points(earlier)
    kept += [dict(point) for point in points if dict(point) not in kept]
    keep_fact(store, about, json.dumps({"points": kept}), f"sizes of {model}", model)


def load_tuned_sizes(store: RecordStore, workload: str) -> tuple[dict[str, int], ...]:
    """The points for which a workload was tuned, each once; unreadable texts are ignored."""
    points: list[dict[str, int]] = []
    for session in store.sessions_about(f'"kind": "{_SIZES_KIND}"', workload):
        points += [point for point in _points(session) if point not in points]
    return tuple(points)


def _points(session: SavedSession) -> list[dict[str, int]]:
    try:
        points = json.loads(session.state)["points"]
        return [{str(name): int(number) for name, number in each.items()} for each in points]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []
