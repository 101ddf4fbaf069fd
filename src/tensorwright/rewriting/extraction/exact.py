"""The cheapest selection of all, by integer programming; loops are forbidden when they turn up.

A variable of each node says whether it is taken.  A class that is wanted takes a node, and a class
whose node needs another class has that class wanted:

    minimise  sum of cost * taken
    so that   taken nodes of a root are one
              taken nodes of a class that need class d  <=  taken nodes of d      for each class, d
              taken nodes of a class of a loop  <=  taken nodes of the loop that need none of its
              classes                                                             lazily

The last are the loop formulas of logic programs (Lin and Zhao, ASSAT, Artificial Intelligence 157,
2004): of the classes of a loop that are taken, the first to be computed needs none of the others.

Source:  Yang et al., Equality Saturation for Tensor Graph Superoptimization (TENSAT), MLSys 2021,
         section 5; there cycles are forbidden beforehand, by an order or by filtering.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from tensorwright.rewriting.extraction.contraction import contracted
from tensorwright.rewriting.extraction.local_search import cheapest_dag
from tensorwright.rewriting.extraction.problem import ExtractionProblem, Selection, strong_parts
from tensorwright.rewriting.extraction.reduction import reduced

_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class ExactExtraction:
    """The best selection that was found, and what was proved of it.

    bound   no selection costs less
    cuts    loops that had to be forbidden
    """

    selection: Selection
    bound: float
    solves: int
    cuts: int
    seconds: float

    @property
    def gap(self) -> float:
        """By how much of its cost the selection may be too dear; 0 where it is the best."""
        if self.selection.cost <= 0:
            return 0.0
        return max(0.0, self.selection.cost - self.bound) / self.selection.cost

    @property
    def is_optimal(self) -> bool:
        """Whether nothing is cheaper, up to rounding."""
        return self.gap <= 1e-6


def cheapest_exact(
    problem: ExtractionProblem, *, limit_s: float = 60.0, start: Selection | None = None
) -> ExactExtraction:
    """Search for the cheapest selection; the best so far where the time is over.

    start   a selection to beat; that of the local search where none is given
    """
    began = time.perf_counter()
    small = contracted(problem)
    found = _search(small.problem, start and small.contracted(start), limit_s)
    selection = small.expanded(found.selection)
    return replace(found, selection=selection, seconds=time.perf_counter() - began)


def _search(problem: ExtractionProblem, start: Selection | None, limit_s: float) -> ExactExtraction:
    began = time.perf_counter()
    best = start or cheapest_dag(problem).selection
    program = _Program(problem, best.cost)
    bound, solves = program.reduced.bound, 0
    while best.cost > bound:
        left_s = limit_s - (time.perf_counter() - began)
        if left_s <= 0:
            break
        found = program.solve(left_s)
        solves += 1
        bound = max(bound, found.bound)
        if found.choice is None:
            break
        loops = _loops(problem, found.choice)
        if not loops:
            selection = Selection.of(problem, found.choice)
            if selection.cost < best.cost:
                best = selection
            break
        for loop in loops:
            program.forbid(loop)
    seconds = time.perf_counter() - began
    return ExactExtraction(best, min(bound, best.cost), solves, program.cuts, seconds)


@dataclass(frozen=True, slots=True)
class _Solved:
    choice: dict[int, int] | None
    bound: float


class _Program:
    """The integer program, to which cuts are added."""

    def __init__(self, problem: ExtractionProblem, most: float) -> None:
        self.cuts = 0
        self._problem = problem
        self._most = most
        self.reduced = reduced(problem, most)
        self._nodes = self.reduced.nodes
        self._column = {node: n for n, node in enumerate(self._nodes)}
        self._of: dict[int, list[int]] = {}
        for node in self._nodes:
            self._of.setdefault(problem.node_class[node], []).append(node)
        self._rows: list[dict[int, float]] = []
        self._low: list[float] = []
        self._high: list[float] = []
        self._require()

    def _require(self) -> None:
        problem = self._problem
        for name, nodes in self._of.items():
            is_needed = name in self.reduced.needed
            self._add(dict.fromkeys(nodes, 1.0), 1.0 if is_needed else 0.0, 1.0)
            wanted: dict[int, list[int]] = {}
            for node in nodes:
                for below in problem.below(node):
                    wanted.setdefault(below, []).append(node)
            for below, users in wanted.items():
                row = dict.fromkeys(self._of[below], 1.0)
                for node in users:
                    row[node] = row.get(node, 0.0) - 1.0
                self._add(row, 0.0, math.inf)
        cost = {node: problem.cost[node] for node in self._nodes if problem.cost[node]}
        self._add(cost, 0.0, self._most * (1 + _SLACK))

    def _add(self, row: dict[int, float], low: float, high: float) -> None:
        self._rows.append({self._column[node]: factor for node, factor in row.items()})
        self._low.append(low)
        self._high.append(high)

    def forbid(self, loop: frozenset[int]) -> None:
        """A class of a loop is taken only with a node of it that needs none of its classes."""
        outside = [
            node
            for name in loop
            for node in self._of.get(name, ())
            if loop.isdisjoint(self._problem.below(node))
        ]
        for name in loop:
            row = dict.fromkeys(outside, 1.0)
            for node in self._of[name]:
                row[node] = row.get(node, 0.0) - 1.0
            self._add({node: x for node, x in row.items() if x}, 0.0, math.inf)
        self.cuts += 1

    def solve(self, limit_s: float) -> _Solved:
        """The best selection as far as loops are forbidden."""
        matrix = csr_array(
            (
                [factor for row in self._rows for factor in row.values()],
                [column for row in self._rows for column in row],
                np.cumsum([0, *(len(row) for row in self._rows)]),
            ),
            shape=(len(self._rows), len(self._nodes)),
        )
        found = milp(
            [self._problem.cost[node] for node in self._nodes],
            integrality=np.ones(len(self._nodes)),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(matrix, self._low, self._high),
            options={"time_limit": limit_s, "mip_rel_gap": 0.0},
        )
        known = found.mip_dual_bound
        bound = float(known) if known is not None and math.isfinite(known) else 0.0
        if found.x is None:
            # nothing as cheap as the selection to beat is left
            return _Solved(None, self._most if found.status == 2 else bound)
        taken = (node for node, x in zip(self._nodes, found.x, strict=True) if x > 0.5)
        choice = {self._problem.node_class[node]: node for node in taken}
        return _Solved(_reached(self._problem, choice), bound)


def _reached(problem: ExtractionProblem, choice: dict[int, int]) -> dict[int, int]:
    """What of a choice the roots need: more may be taken where it costs nothing."""
    found: dict[int, int] = {}
    waiting = list(problem.roots)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = choice[name]
            waiting += problem.below(choice[name])
    return found


def _loops(problem: ExtractionProblem, choice: dict[int, int]) -> list[frozenset[int]]:
    """The sets of classes that need each other by the nodes that were taken."""
    names = list(choice)
    place = {name: n for n, name in enumerate(names)}
    edges = [
        (place[name], place[below])
        for name, node in choice.items()
        for below in problem.below(node)
    ]
    by_part: dict[int, list[int]] = {}
    for name, part in zip(names, strong_parts(len(names), edges), strict=True):
        by_part.setdefault(part, []).append(name)
    return [frozenset(part) for part in by_part.values() if len(part) > 1]
