"""E-graphs as the egg community's tools exchange them: JSON of nodes, classes and roots.

    {"nodes": {"a0": {"op": "relu", "children": ["b0"], "eclass": "a", "cost": 1.0}, ...},
     "root_eclasses": ["a"], "class_data": {}}

A child is named by any node of its class.

Source:  egraph-serialize and extraction-gym, github.com/egraphs-good.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorwright.base import UsageError, write_atomically
from tensorwright.rewriting.extraction import ExtractionProblem


@dataclass(frozen=True, slots=True, eq=False)
class SerializedEGraph:
    """An extraction problem with the operators of its nodes, and the names of its classes."""

    problem: ExtractionProblem
    operators: tuple[str, ...]
    class_names: tuple[str, ...]


def read_egraph(path: Path) -> SerializedEGraph:
    """Read a file.  A node without a cost costs 1.

    Raises:  UsageError that names the node.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise _fault(str(path), f"cannot be read: {error}") from None
    nodes = document.get("nodes") if isinstance(document, dict) else None
    if not isinstance(nodes, dict):
        raise _fault(str(path), 'has no table "nodes"')
    reader = _Reader(str(path), nodes)
    roots = [reader.named_class(each) for each in document.get("root_eclasses", ())]
    if not roots:
        raise _fault(str(path), 'names no class in "root_eclasses"')
    listed = [reader.node(name) for name in nodes]
    return SerializedEGraph(
        ExtractionProblem.of(listed, roots),
        tuple(str(each.get("op", "")) for each in nodes.values()),
        tuple(reader.classes),
    )


class _Reader:
    """Nodes and classes by name."""

    def __init__(self, where: str, nodes: dict[str, Any]) -> None:
        self._where = where
        self._nodes = nodes
        self.classes: dict[str, int] = {}
        for name, node in nodes.items():
            if not isinstance(node, dict) or not isinstance(node.get("eclass"), str):
                raise self._fault(name, 'has no "eclass"')
            self.classes.setdefault(node["eclass"], len(self.classes))

    def node(self, name: str) -> tuple[int, float, tuple[int, ...]]:
        """Class, cost and the classes below."""
        node = self._nodes[name]
        below = node.get("children", ())
        if not isinstance(below, list | tuple):
            raise self._fault(name, '"children" is not a list')
        for each in below:
            if each not in self._nodes:
                raise self._fault(name, f"child {each!r} is not a node")
        cost = node.get("cost", 1.0)
        if not isinstance(cost, int | float) or math.isnan(cost) or cost < 0:
            raise self._fault(name, f"costs {cost!r}")
        children = tuple(self.classes[self._nodes[each]["eclass"]] for each in below)
        return self.classes[node["eclass"]], float(cost), children

    def named_class(self, name: object) -> int:
        """The number of a class."""
        number = self.classes.get(name) if isinstance(name, str) else None
        if number is None:
            raise _fault(self._where, f"root class {name!r} has no node")
        return number

    def _fault(self, name: str, reason: str) -> UsageError:
        return _fault(f"{self._where}, node {name!r}", reason)


def _fault(where: str, reason: str) -> UsageError:
    remedy = "see github.com/egraphs-good/egraph-serialize for the format"
    return UsageError(stage="rewrite", where=where, reason=reason, remedy=remedy)


def egraph_text(
    problem: ExtractionProblem, operators: Sequence[str], class_names: Sequence[str] = ()
) -> str:
    """The JSON of an e-graph; classes and nodes are named by number where no names are given."""
    names = tuple(class_names) or tuple(map(str, range(len(problem.members))))
    rank = {node: n for members in problem.members for n, node in enumerate(members)}
    ids = [f"{names[name]}__{rank[node]}" for node, name in enumerate(problem.node_class)]
    nodes = {
        ids[node]: {
            "op": operators[node],
            "children": [ids[problem.members[below][0]] for below in problem.children[node]],
            "eclass": names[name],
            "cost": problem.cost[node],
        }
        for node, name in enumerate(problem.node_class)
    }
    roots = [names[root] for root in problem.roots]
    document = {"nodes": nodes, "root_eclasses": roots, "class_data": {}}
    return json.dumps(document, indent=1)


def write_egraph(
    path: Path,
    problem: ExtractionProblem,
    operators: Sequence[str],
    class_names: Sequence[str] = (),
) -> None:
    """Write a file."""
    write_atomically(path, egraph_text(problem, operators, class_names).encode())
