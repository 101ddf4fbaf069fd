"""The sizes for which an open workload was tuned, kept as a session of the record store.

The measurements are records of the workload with these sizes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from tensorwright.records.session import SavedSession, session_id
from tensorwright.records.store import RecordStore

_KIND = "tuned sizes"


def save_tuned_sizes(
    store: RecordStore, workloads: Sequence[str], points: Sequence[Mapping[str, int]], model: str
) -> None:
    """Add points to the kept ones of some workloads with named sizes, by their keys."""
    arguments = json.dumps({"kind": _KIND, "workloads": sorted(workloads)}, sort_keys=True)
    identity = session_id(arguments)
    earlier = store.session(identity)
    kept = [] if earlier is None else _points(earlier)
    kept += [dict(point) for point in points if dict(point) not in kept]
    state = json.dumps({"points": kept})
    store.renew_session(SavedSession(identity, f"sizes of {model}", model, arguments, state))


def load_tuned_sizes(store: RecordStore, workload: str) -> tuple[dict[str, int], ...]:
    """The points for which a workload was tuned, each once; unreadable texts are ignored."""
    points: list[dict[str, int]] = []
    for session in store.sessions_about(f'"kind": "{_KIND}"', workload):
        points += [point for point in _points(session) if point not in points]
    return tuple(points)


def _points(session: SavedSession) -> list[dict[str, int]]:
    try:
        points = json.loads(session.state)["points"]
        return [{str(name): int(number) for name, number in each.items()} for each in points]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []
