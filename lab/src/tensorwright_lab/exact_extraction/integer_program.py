"""The integer program of an extraction problem, its relaxation, and the cuts that both share.

A variable of each node says whether it is taken.  A class that is wanted takes a node, and a class
whose node needs another class has that class wanted:

    minimise  sum of cost * taken
    so that   taken nodes of a root are one
              taken nodes that need class d  <=  taken nodes of d     for each d, and each group of
              such nodes of which no selection takes two: those of a class, and other conflicts
              the cuts of `derivation_cuts.py`, those that turn out to be violated

Costs are scaled, for solvers compare differences with small constants.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_array, vstack

from tensorwright.rewriting.extraction import ExtractionProblem
from tensorwright_lab.exact_extraction.conflicts import exclusive_users
from tensorwright_lab.exact_extraction.derivation_cuts import Cut, Vector

_SCALE = 1000.0  # the scaled cost of the selection to beat
_ROUNDING = 1e-7  # of that: the error that the solver may make
_AGE = 5  # solutions of the relaxation


@dataclass(frozen=True, slots=True)
class Relaxed:
    """A solution of the relaxation.

    taken     how much of each node         bound   no selection costs less
    increase    no selection with a node costs less than `bound` and this
    """

    taken: Vector
    bound: float
    increase: Vector


@dataclass(frozen=True, slots=True)
class Solved:
    """The result of the solver: a node for each class, None for no solution; and a proved bound."""

    choice: dict[int, int] | None
    bound: float


class IntegerProgram:
    """The program, to which cuts are added.

    Mutable: cuts that are not tight in several solutions of the relaxation are forgotten.
    """

    def __init__(self, problem: ExtractionProblem, most: float) -> None:
        self._problem = problem
        self._most = most
        self._unit = most / _SCALE
        self._cost = np.array(problem.cost) / self._unit
        self._rows: list[dict[int, float]] = []
        self._low: list[float] = []
        self._high: list[float] = []
        self._cuts: dict[Cut, int] = {}
        self._largest = np.ones(len(problem.cost))
        self._require()
        self._fixed = self._matrix(self._rows)

    def _require(self) -> None:
        problem = self._problem
        roots = frozenset(problem.roots)
        for name, nodes in enumerate(problem.members):
            if nodes:
                self._add(dict.fromkeys(nodes, 1.0), 1.0 if name in roots else 0.0, 1.0)
        for below, groups in exclusive_users(problem).items():
            for users in groups if below not in roots else ():
                row = dict.fromkeys(problem.members[below], 1.0)
                for node in users:
                    row[node] = row.get(node, 0.0) - 1.0
                self._add(row, 0.0, math.inf)

    def _add(self, row: dict[int, float], low: float, high: float) -> None:
        self._rows.append(row)
        self._low.append(low)
        self._high.append(high)

    def add(self, cuts: Iterable[Cut]) -> int:
        """Add cuts; how many are new."""
        before = len(self._cuts)
        for cut in cuts:
            self._cuts.setdefault(cut, 0)
        return len(self._cuts) - before

    def leave_out(self, nodes: Iterable[int]) -> None:
        """Take none of some nodes."""
        self._largest[list(nodes)] = 0.0

    def relax(self) -> Relaxed | None:
        """The best fractional solution; None where there is no solution."""
        cuts = list(self._cuts)
        matrix, low, high = self._all(cuts)
        is_equal = low == high
        solution = linprog(
            self._cost,
            A_ub=_stacked(-matrix[~is_equal], matrix[~is_equal & (high < math.inf)]),
            b_ub=np.concatenate((-low[~is_equal], high[~is_equal & (high < math.inf)])),
            A_eq=matrix[is_equal],
            b_eq=low[is_equal],
            bounds=np.stack((np.zeros(len(self._cost)), self._upper()), axis=1),
            method="highs",
        )
        if solution.x is None:
            return None
        slack = matrix @ solution.x - low
        for cut, each in zip(cuts, slack[len(self._low) :], strict=True):
            self._cuts[cut] = 0 if each < _ROUNDING else self._cuts[cut] + 1
            if self._cuts[cut] > _AGE:
                del self._cuts[cut]
        bound = float(solution.fun) - _ROUNDING * _SCALE
        return Relaxed(
            np.clip(solution.x, 0.0, 1.0),
            bound * self._unit,
            np.maximum(solution.lower.marginals, 0.0) * self._unit,
        )

    def solve(self, limit_s: float) -> Solved:
        """The best selection as far as loops are forbidden."""
        matrix, low, high = self._all(list(self._cuts))
        solution = milp(
            self._cost,
            integrality=np.ones(len(self._cost)),
            bounds=Bounds(0, self._largest),
            constraints=LinearConstraint(matrix, low, high),
            options={"time_limit": limit_s, "mip_rel_gap": 0.0},
        )
        dual = solution.mip_dual_bound
        bound = float(dual) * self._unit if dual is not None and math.isfinite(dual) else 0.0
        if solution.x is None:
            return Solved(None, self._most if solution.status == 2 else bound)
        taken = (node for node, x in enumerate(solution.x) if x > 0.5)
        choice = {self._problem.node_class[node]: node for node in taken}
        return Solved(_reached(self._problem, choice), bound)

    def _upper(self) -> Vector:
        """Bounds of the relaxation: rows say that no class is taken twice, so that each dual value
        of a bound is of the lower one.
        """
        return np.where(self._largest > 0, np.inf, 0.0)

    def _all(self, cuts: list[Cut]) -> tuple[csr_array, Vector, Vector]:
        rows = []
        for cut in cuts:
            row = dict.fromkeys(cut.derived_by, 1.0)
            for node in self._problem.members[cut.name]:
                row[node] = row.get(node, 0.0) - 1.0
            rows.append({node: factor for node, factor in row.items() if factor})
        matrix = _stacked(self._fixed, self._matrix(rows)) if rows else self._fixed
        low = np.array([*self._low, *[0.0] * len(rows)])
        high = np.array([*self._high, *[math.inf] * len(rows)])
        return matrix, low, high

    def _matrix(self, rows: list[dict[int, float]]) -> csr_array:
        return csr_array(
            (
                [factor for row in rows for factor in row.values()],
                [column for row in rows for column in row],
                np.cumsum([0, *(len(row) for row in rows)]),
            ),
            shape=(len(rows), len(self._problem.cost)),
        )


def _stacked(upper: csr_array, lower: csr_array) -> csr_array:
    return csr_array(vstack((upper, lower)))


def _reached(problem: ExtractionProblem, choice: dict[int, int]) -> dict[int, int]:
    """The part of a choice that the roots need; solvers may take more where it costs nothing."""
    reached: dict[int, int] = {}
    waiting = list(problem.roots)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached[name] = choice[name]
            waiting += problem.below(choice[name])
    return reached
