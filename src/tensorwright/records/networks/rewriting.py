"""The certificate of a graph that is faster than a network, kept as a session of the record store.

The key of the session is the network's simplified graph, and the machine.
"""

from __future__ import annotations

import hashlib
import json

from tensorwright.base import Target
from tensorwright.graph import Graph
from tensorwright.records.session import SavedSession, session_id
from tensorwright.records.store import RecordStore

_NO_CERTIFICATE = "null"


def save_rewriting(
    store: RecordStore, graph: Graph, target: Target, hardware: str, threads: int, certificate: str
) -> None:
    """Keep the certificate of a faster graph for a network; it replaces the one before.

    certificate   as JSON; "" if no graph is faster than the network itself
    """
    arguments = _arguments(graph, target, hardware, threads)
    identity, state = session_id(arguments), certificate or _NO_CERTIFICATE
    store.renew_session(SavedSession(identity, _name(graph), graph.name, arguments, state))


def load_rewriting(
    store: RecordStore, graph: Graph, target: Target, hardware: str, threads: int
) -> str | None:
    """The kept certificate of a simplified network; "" if no graph is faster; None without one."""
    if store.session(_name(graph)) is None:  # usual, and cheaper than a hash of all constants
        return None
    kept = store.session(session_id(_arguments(graph, target, hardware, threads)))
    if kept is None:
        return None
    return "" if kept.state == _NO_CERTIFICATE else kept.state


def _name(graph: Graph) -> str:
    return f"rewriting of {graph.name}"


def _arguments(graph: Graph, target: Target, hardware: str, threads: int) -> str:
    fields = {
        "kind": "rewriting",
        "graph": hashlib.sha256(str(graph).encode()).hexdigest(),
        "target": target.key,
        "hardware": hardware,
        "threads": threads,
    }
    return json.dumps(fields, sort_keys=True)
