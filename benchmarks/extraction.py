"""Extraction from serialised e-graphs: trees, steps and integer programs.

    python benchmarks/extraction.py FILE ... [--limit SECONDS] [--json FILE]

For each e-graph: what the cheapest trees cost as trees and with what they share counted once, what
local search makes of them, and the best that integer programming finds, with the gap that it leaves
open.  The files are those of the egg community: github.com/egraphs-good/extraction-gym.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from tensorwright.cli.printing import print_table
from tensorwright.rewriting.extraction import ExtractionProblem, Selection, cheapest_trees
from tensorwright.rewriting.local_search import cheapest_dag
from tensorwright_lab.exact_extraction import cheapest_exact, read_egraph

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Row:
    """Costs and seconds of one e-graph.

    tree, trees_shared   of the cheapest trees, shared classes paid for at each use and once
    gap                  by how much of its cost the best selection may be too dear
    """

    name: str
    nodes: int
    classes: int
    tree: float
    trees_shared: float
    trees_s: float
    local: float
    local_s: float
    exact: float
    gap: float
    exact_s: float


def measure(path: Path, limit_s: float) -> Row:
    """Extract from one file in all ways."""
    problem = read_egraph(path).problem
    usual, trees_s = _timed(lambda: _trees(problem))
    local, local_s = _timed(lambda: cheapest_dag(problem))
    exact, exact_s = _timed(lambda: cheapest_exact(problem, limit_s=limit_s, start=local.selection))
    return Row(
        path.name,
        len(problem.cost),
        sum(1 for members in problem.members if members),
        _tree_cost(usual, problem),
        usual.cost,
        trees_s,
        local.selection.cost,
        local_s,
        exact.selection.cost,
        exact.gap,
        exact_s,
    )


def _tree_cost(selection: Selection, problem: ExtractionProblem) -> float:
    """The cost of the tree, each class paid for at each use; infinite beyond all floats."""
    cost: dict[int, float] = {}
    for node in selection.nodes:
        below = (cost[each] for each in problem.children[node])
        cost[problem.node_class[node]] = problem.cost[node] + sum(below)
    return sum(cost[root] for root in problem.roots)


def _trees(problem: ExtractionProblem) -> Selection:
    choice, _ = cheapest_trees(problem)
    return Selection.of(problem, choice)


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    start = time.perf_counter()
    found = work()
    return found, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of an integer program")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    rows = [measure(path, asked.limit) for path in asked.files]
    print_table(
        ("e-graph", "nodes", "classes", "tree", "shared", "s", "local", "s", "exact", "gap", "s"),
        [
            (
                row.name,
                str(row.nodes),
                str(row.classes),
                f"{row.tree:.4g}",
                f"{row.trees_shared:.4f}",
                f"{row.trees_s:.2f}",
                f"{row.local:.4f}",
                f"{row.local_s:.2f}",
                f"{row.exact:.4f}",
                f"{row.gap:.2%}",
                f"{row.exact_s:.1f}",
            )
            for row in rows
        ],
    )
    if asked.json:
        asked.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
