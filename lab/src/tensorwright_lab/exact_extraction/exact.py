"""The cheapest selection: the problem is reduced, divided into parts, and solved in integers.

    found = cheapest_exact(problem)
    found.selection, found.gap         the best, and by how much of its cost it may exceed the
    optimum

A problem is reduced (`reduction.py`) with the cost of a good selection and divided into parts
(`reduction.py`) in turn: a part has a good selection of its own, which leaves out more.  A part
that can neither be reduced nor divided loses the nodes that other classes simulate
(`simulation.py`) and is then relaxed (`integer_program.py`).  The relaxation gives other
selections, and nodes with which no selection is cheaper. Without these nodes the part is reduced
and divided again.  In the end the program is solved in integers; loops are forbidden when they turn
up.

Source:  Yang et al., Equality Saturation for Tensor Graph Superoptimization (TENSAT), MLSys 2021,
         section 5; there cycles are forbidden beforehand, by an order or by filtering.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from tensorwright.rewriting.extraction import (
    Contraction,
    ExtractionProblem,
    Selection,
    cheapest_trees,
    contracted,
    strong_parts,
)
from tensorwright.rewriting.local_search import LocalSearcher
from tensorwright_lab.exact_extraction.derivation_cuts import Cut, cut_of, violated_cuts
from tensorwright_lab.exact_extraction.integer_program import IntegerProgram, Relaxed
from tensorwright_lab.exact_extraction.reduction import Part, independent_parts, reduced
from tensorwright_lab.exact_extraction.simulation import without_simulated

_STEPS = 3  # of the reduction at most, each number where fewer find little
_SLACK = 1e-9
_ROUNDS = 200  # of the relaxation
_RELAXED = 0.7  # of the time at most
_STALLED = 0.02  # of the gap: what some rounds are to close at least
_PATIENCE = 10
_FEWER = 0.95  # of the nodes: when it pays to begin again
_FEW = 0.85  # of the nodes: when it does though cuts are lost


@dataclass(frozen=True, slots=True)
class ExactExtraction:
    """The best selection that was found, and a proved bound.

    bound   no selection costs less
    parts   that had to be solved as programs
    cuts    that were added to these
    """

    selection: Selection
    bound: float
    solves: int
    cuts: int
    parts: int
    seconds: float

    @property
    def gap(self) -> float:
        """By how much of its cost the selection may exceed the optimum; 0 if it is optimal."""
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
    began = time.process_time()
    search = _Search()
    best = search.solve(problem, start, began + limit_s)
    seconds = time.process_time() - began
    bound = min(best.bound, best.selection.cost)
    return ExactExtraction(best.selection, bound, search.solves, search.cuts, search.parts, seconds)


@dataclass(frozen=True, slots=True)
class _Solution:
    selection: Selection
    bound: float


class _Search:
    """The search in all parts; those that are alike are solved once.

    until   the time at which a part is to be given up, on the clock of `time.process_time`
    """

    def __init__(self) -> None:
        self.solves = 0
        self.cuts = 0
        self.parts = 0
        self._solved: dict[tuple[object, ...], _Solution] = {}

    def solve(
        self, problem: ExtractionProblem, start: Selection | None, until: float, steps: int = 0
    ) -> _Solution:
        """The best selection of a problem that was reduced with fewer steps."""
        small = contracted(problem)
        best = in_contraction(small, start) if start else None
        solution = self._reduce(small.problem, best, until, steps)
        return _Solution(small.expanded(solution.selection), solution.bound)

    def _reduce(
        self, problem: ExtractionProblem, start: Selection | None, until: float, first: int
    ) -> _Solution:
        searcher = LocalSearcher(problem)
        best = min(
            (each for each in (start, searcher.improve()) if each),
            key=lambda each: each.cost,
        )
        size = len(problem.cost)
        for steps in range(first, _STEPS + 1):
            left = reduced(problem, best.cost, steps)
            if left.bound >= best.cost * (1 - _SLACK):
                return _Solution(best, best.cost)
            if time.process_time() >= until:
                return _Solution(best, left.bound)
            if steps == first or len(left.nodes) < size:
                parts = independent_parts(problem, left.nodes, left.needed)
                is_other = len(parts) > 1 or len(left.nodes) < _FEWER * size
                if is_other or len(left.nodes) < size:
                    following = 0 if is_other else steps + 1
                    return self._divide(problem, best, parts, until, following)
        kept = without_simulated(problem)
        if len(kept) < _FEWER * size:
            return self._without(problem, best, kept, 0.0, until)
        return self._relax(problem, best, searcher, until)

    def _divide(
        self,
        problem: ExtractionProblem,
        best: Selection,
        parts: list[Part],
        until: float,
        steps: int,
    ) -> _Solution:
        """Solve the parts, small ones first, so that the others have the time that is left."""
        choice: dict[int, int] = {}
        bound = 0.0
        weight = sum(len(part.nodes) for part in parts if not part.is_forced)
        for part in sorted(parts, key=lambda each: len(each.nodes)):
            now = time.process_time()
            share = len(part.nodes) / weight if weight else 1.0
            solution = self._solve_part(part, now + min(1.0, share) * (until - now), steps)
            if not part.is_forced:
                weight -= len(part.nodes)
            bound += solution.bound
            for node in solution.selection.nodes:
                whole = part.nodes[node]
                choice[problem.node_class[whole]] = whole
        selection = Selection.of(problem, choice)
        return _Solution(min(best, selection, key=lambda each: each.cost), bound)

    def _solve_part(self, part: Part, until: float, steps: int) -> _Solution:
        problem = part.problem
        if part.is_forced:
            forced = {name: node for node, name in enumerate(problem.node_class)}
            selection = Selection.of(problem, forced)
            return _Solution(selection, selection.cost)
        key = problem.node_class, problem.cost, problem.children, problem.roots
        if key not in self._solved:
            self._solved[key] = self.solve(problem, None, until, steps)
        return self._solved[key]

    def _relax(
        self,
        problem: ExtractionProblem,
        best: Selection,
        searcher: LocalSearcher,
        until: float,
    ) -> _Solution:
        """Raise the bound by cuts; go on without the nodes with which nothing is cheaper."""
        self.parts += 1
        program = IntegerProgram(problem, best.cost)
        below = [problem.below(node) for node in range(len(problem.cost))]
        now = time.process_time()
        stop = now + _RELAXED * (until - now)
        bound, bounds = 0.0, [0.0]
        kept = list(range(len(problem.cost)))
        for _ in range(_ROUNDS):
            relaxed = program.relax()
            if relaxed is None:
                break
            bound = max(bound, relaxed.bound)
            bounds.append(bound)
            other = searcher.improve(_rounded(problem, relaxed))
            best = min(best, other, key=lambda each: each.cost)
            if bound >= best.cost * (1 - 1e-7):
                return _Solution(best, bound)
            most = best.cost * (1 + _SLACK)
            expensive = [n for n in kept if relaxed.bound + relaxed.increase[n] > most]
            if expensive:
                program.leave_out(expensive)
                kept = sorted({*kept} - {*expensive})
            if len(kept) < _FEW * len(problem.cost) or time.process_time() >= stop:
                break
            cuts = program.add(violated_cuts(problem, below, relaxed.taken))
            self.cuts += cuts
            raised = bound - bounds[-_PATIENCE] if len(bounds) > _PATIENCE else best.cost
            if not cuts or raised < _STALLED * (best.cost - bound):
                break
        if len(kept) < _FEWER * len(problem.cost) and time.process_time() < until:
            return self._without(problem, best, kept, bound, until)
        return self._program(problem, best, bound, program, until)

    def _without(
        self,
        problem: ExtractionProblem,
        best: Selection,
        kept: list[int],
        bound: float,
        until: float,
    ) -> _Solution:
        """Solve the problem without some nodes; no selection with one of these is the only
        cheapest.
        """
        nodes = [(problem.node_class[n], problem.cost[n], problem.children[n]) for n in kept]
        index = {node: n for n, node in enumerate(kept)}
        start = None
        if index.keys() >= {*best.nodes}:
            start = Selection(tuple(index[node] for node in best.nodes), best.cost)
        solution = self.solve(ExtractionProblem.of(nodes, problem.roots), start, until)
        selection = Selection(
            tuple(kept[n] for n in solution.selection.nodes), solution.selection.cost
        )
        best = min(best, selection, key=lambda each: each.cost)
        return _Solution(best, max(bound, solution.bound))

    def _program(
        self,
        problem: ExtractionProblem,
        best: Selection,
        bound: float,
        program: IntegerProgram,
        until: float,
    ) -> _Solution:
        while best.cost > bound:
            left_s = until - time.process_time()
            if left_s <= 0:
                break
            solved = program.solve(left_s)
            self.solves += 1
            bound = max(bound, solved.bound)
            if solved.choice is None:
                break
            cuts = _loops(problem, solved.choice)
            if not cuts:
                selection = Selection.of(problem, solved.choice)
                best = min(best, selection, key=lambda each: each.cost)
                break
            self.cuts += program.add(cuts)
        return _Solution(best, min(bound, best.cost))


def _rounded(problem: ExtractionProblem, relaxed: Relaxed) -> Selection:
    """The cheapest trees where what the relaxation takes costs less."""
    cost = [
        each * (1.0 - taken * (1 - 1e-3))
        for each, taken in zip(problem.cost, relaxed.taken.tolist(), strict=True)
    ]
    nodes = zip(problem.node_class, cost, problem.children, strict=True)
    choice, _ = cheapest_trees(ExtractionProblem.of(nodes, problem.roots))
    return Selection.of(problem, choice)


def _loops(problem: ExtractionProblem, choice: dict[int, int]) -> list[Cut]:
    """Cuts of the sets of classes that need each other by the nodes that were taken."""
    names = list(choice)
    index = {name: n for n, name in enumerate(names)}
    edges = [
        (index[name], index[below])
        for name, node in choice.items()
        for below in problem.below(node)
    ]
    by_part: dict[int, list[int]] = {}
    for name, part in zip(names, strong_parts(len(names), edges), strict=True):
        by_part.setdefault(part, []).append(name)
    loops = [frozenset(part) for part in by_part.values() if len(part) > 1]
    return [cut_of(problem, name, loop) for loop in loops for name in loop]


def in_contraction(contraction: Contraction, selection: Selection) -> Selection:
    """The rest of a selection of the whole, which costs no more."""
    number_of = {contraction.key(node): n for n, node in enumerate(contraction.nodes)}
    choice: dict[int, int] = {}
    for node in selection.nodes:
        name = contraction.whole.node_class[node]
        if name not in contraction.free:
            choice[name] = number_of[contraction.key(node)]
    return Selection.of(contraction.problem, choice)
