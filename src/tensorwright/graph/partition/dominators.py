"""Immediate post-dominators: the node after which a node's result is no longer needed."""

from __future__ import annotations

from collections.abc import Sequence


def post_dominators(readers: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """For each node the first later one through which every path to the end goes.

    readers  for each node in topological order the nodes that read it; the number of nodes stands
             for the end, to which a node without readers leads
    """
    end = len(readers)
    dominators = [end] * (end + 1)
    depth = [0] * (end + 1)
    for node in reversed(range(end)):
        meeting: int | None = None
        for reader in readers[node]:
            meeting = reader if meeting is None else _meet(meeting, reader, dominators, depth)
        dominators[node] = end if meeting is None else meeting
        depth[node] = depth[dominators[node]] + 1
    return tuple(dominators[:end])


def _meet(a: int, b: int, dominators: Sequence[int], depth: Sequence[int]) -> int:
    """The nearest common ancestor in the tree of post-dominators."""
    while a != b:
        if depth[a] < depth[b]:
            b = dominators[b]
        else:
            a = dominators[a]
    return a


def between(node: int, last: int, readers: Sequence[Sequence[int]]) -> frozenset[int]:
    """The nodes on the paths from `node` (not counted) to its post-dominator `last` (counted)."""
    seen: set[int] = set()
    pending = list(readers[node])
    while pending:
        at = pending.pop()
        if at not in seen:
            seen.add(at)
            if at != last:
                pending.extend(readers[at])
    return frozenset(seen)
