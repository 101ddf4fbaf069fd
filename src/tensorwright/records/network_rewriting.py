"""The certificate of the graph that was found faster than a network, kept beside the records.

It is stored as a session of the store, under what the network is: its graph, and the machine.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

from tensorwright.base import Target, now_utc
from tensorwright.graph import Graph
from tensorwright.records.session import SavedSession
from tensorwright.records.store import RecordStore


def save_rewriting(
    store: RecordStore, graph: Graph, target: Target, hardware: str, threads: int, text: str
) -> None:
    """Keep the certificate of a simplified network, a JSON text, replacing the one before; "null"
    where the network itself is the fastest.
    """
    identity, arguments = _identity(graph, target, hardware, threads)
    session = SavedSession(identity, _name(graph), graph.name, arguments, text)
    before = store.session(identity)
    if before is not None and before.id == identity:
        session = replace(session, started=before.started, updated=now_utc())
    store.save_session(session)


def load_rewriting(
    store: RecordStore, graph: Graph, target: Target, hardware: str, threads: int
) -> str | None:
    """The text that was kept for a simplified network; None where nothing was."""
    kept = [each for each in store.sessions() if each.name == _name(graph)]
    if not kept:  # the usual case, which costs no hash of all constants
        return None
    identity, _ = _identity(graph, target, hardware, threads)
    return next((each.state for each in kept if each.id == identity), None)


def _name(graph: Graph) -> str:
    return f"rewriting of {graph.name}"


def _identity(graph: Graph, target: Target, hardware: str, threads: int) -> tuple[str, str]:
    fields = {
        "kind": "rewriting",
        "graph": hashlib.sha256(str(graph).encode()).hexdigest(),
        "target": target.key,
        "hardware": hardware,
        "threads": threads,
    }
    arguments = json.dumps(fields, sort_keys=True)
    return hashlib.sha256(arguments.encode()).hexdigest()[:16], arguments
