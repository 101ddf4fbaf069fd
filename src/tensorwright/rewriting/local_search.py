"""Selections by steps that make a DAG cheaper, from the cheapest trees on.

    cheap_selections(problem, 1)[0]        no step makes it cheaper

Two kinds of steps.  One class takes another of its nodes.  Or a class that nobody uses is put to
use: all used classes that have a node above it take that node together.  So two products become the
two parts of one, although neither gains alone; trees do not see sharing.

A class that comes into use does so by its usual node, at first that of the cheapest tree.  Where no
step gains, the usual nodes become the cheapest ones beside the selection, whose own classes count
as free.

Costs of nodes are estimates, so the cheapest selection need not be the fastest program.  To find
others, a class keeps another node than in the cheapest selection, and the rest is improved.
Selections whose nodes have equal costs, one by one, count as one: for example sums in another
order.

A selection that is changed step by step, with its use counts and its cost.

    draft = Draft(problem, usual)  what the roots need by a usual choice, or a given selection
    draft.switch(name, node)       take another node for a class; classes that are no longer used
                                   are let go, others come in; False where a class would need itself
    draft.undo(mark)               as it was at `draft.mark()`

The time of a step depends on what it changes, not on the whole: uses are counted, as in the area
recovery of technology mapping.

Source:  Mishchenko, Chatterjee, Brayton, Improvements to technology mapping for LUT-based FPGAs,
         FPGA 2006, section 3 (exact local area).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tensorwright.rewriting.extraction import (
    Choice,
    ExtractionProblem,
    Selection,
    cheapest_trees,
    cheapest_trees_given,
    cyclic_parts,
)


@dataclass(frozen=True, slots=True)
class _Switched:
    """A step that can be undone: the node before, and those of classes that were let go."""

    name: int
    before: int
    let_go: tuple[tuple[int, int], ...]


class Draft:
    """A choice for all classes that can be computed, and the used part of it.

    usual   the node of a class when it comes into use; together the usual nodes have no loop
    steps   the number of classes that were examined or changed, for limits that are counts
    """

    def __init__(self, problem: ExtractionProblem, usual: Choice) -> None:
        self.problem = problem
        self._usual = usual
        self._below = tuple(problem.below(node) for node in range(len(problem.cost)))
        self._cycle = cyclic_parts(problem)
        self.begin()

    def rebase(self, usual: Choice) -> None:
        """Set the nodes of classes that come into use from now on; used classes stay as they are.

        usual   without loops, the nodes that are used among them
        """
        self._usual = usual
        self._node.update(usual)

    def begin(self, start: Selection | None = None) -> None:
        """Begin again with a selection, or with the usual nodes."""
        self.cost = 0.0
        self.steps = 0
        self._node = {**self._usual, **(start.choice(self.problem) if start else {})}
        self._uses = dict.fromkeys(self._node, 0)
        self._done: list[_Switched] = []
        self._acquire(self.problem.roots)

    def node(self, name: int) -> int:
        """The node of a class."""
        return self._node[name]

    def is_used(self, name: int) -> bool:
        """Whether the roots need a class."""
        return self._uses.get(name, 0) > 0

    def used(self) -> list[int]:
        """The classes that the roots need."""
        return [name for name, uses in self._uses.items() if uses]

    def selection(self) -> Selection:
        """The selection of the used nodes."""
        return Selection.of(self.problem, self._node)

    def switch(self, name: int, node: int) -> bool:
        """Take a node for a class in use; False where the class would need itself."""
        below = self._below[node]
        if any(each not in self._node for each in below) or self._needs(below, name):
            return False
        before = self._node[name]
        self._node[name] = node
        self.cost += self.problem.cost[node] - self.problem.cost[before]
        self._acquire(below)
        let_go = self._release(self._below[before])
        self._done.append(_Switched(name, before, let_go))
        return True

    def mark(self) -> int:
        """The place to which `undo` goes back."""
        return len(self._done)

    def keep(self) -> None:
        """Drop the steps that could be undone."""
        self._done.clear()

    def undo(self, mark: int) -> None:
        """Take back all steps since a mark."""
        while len(self._done) > mark:
            step = self._done.pop()
            node = self._node[step.name]
            self._node.update(step.let_go)
            self._node[step.name] = step.before
            self.cost += self.problem.cost[step.before] - self.problem.cost[node]
            self._acquire(self._below[step.before])
            self._release(self._below[node])

    def _needs(self, names: tuple[int, ...], wanted: int) -> bool:
        """Whether one of some classes needs a class, by the nodes that are chosen."""
        part = self._cycle[wanted]
        stack = [name for name in names if self._cycle[name] == part]
        seen = set(stack)
        while stack:
            name = stack.pop()
            self.steps += 1
            if name == wanted:
                return True
            for each in self._below[self._node[name]]:
                if self._cycle[each] == part and each not in seen:
                    seen.add(each)
                    stack.append(each)
        return False

    def _acquire(self, names: tuple[int, ...]) -> None:
        stack = list(names)
        while stack:
            name = stack.pop()
            self._uses[name] += 1
            self.steps += 1
            if self._uses[name] == 1:
                node = self._node[name]
                self.cost += self.problem.cost[node]
                stack += self._below[node]

    def _release(self, names: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        """Release classes; those without a remaining use get their usual node again."""
        let_go: list[tuple[int, int]] = []
        stack = list(names)
        while stack:
            name = stack.pop()
            self._uses[name] -= 1
            self.steps += 1
            if self._uses[name] == 0:
                node = self._node[name]
                self.cost -= self.problem.cost[node]
                stack += self._below[node]
                if node != self._usual[name]:
                    let_go.append((name, node))
                    self._node[name] = self._usual[name]
        return tuple(let_go)


_LEAST_GAIN = 1e-9  # of the whole: less is rounding
_TRIES = 4  # for each selection that is wanted
_ALIKE = 1e-6  # of the whole: costs that differ by less are the same


class LocalSearcher:
    """Searches in one problem, which share their results about it.

    draft        that of the last search          most_steps   of each: classes looked at
    Raises:  ValueError where a root has no finite term.
    """

    def __init__(self, problem: ExtractionProblem, most_steps: int = 20_000_000) -> None:
        usual, _ = cheapest_trees(problem)
        for root in problem.roots:
            if root not in usual:
                raise ValueError(f"class {root} has no term of finite cost")
        self.draft = Draft(problem, usual)
        self._usual = usual
        self._problem = problem
        self._most_steps = most_steps
        self._fixed = -1
        self._above: dict[int, list[tuple[int, int]]] = {name: [] for name in usual}
        for node, name in enumerate(problem.node_class):
            below = problem.below(node)
            if (
                name in usual
                and math.isfinite(problem.cost[node])
                and all(x in usual for x in below)
            ):
                for each in below:
                    self._above[each].append((name, node))

    def improve(self, start: Selection | None = None, fixed: int = -1) -> Selection:
        """Improve a selection, that of the cheapest trees where none is given.

        fixed   a class that keeps its node; then only single classes take other nodes
        """
        draft = self.draft
        draft.rebase(self._usual)
        draft.begin(start)
        self._fixed = fixed
        has_gained, is_done = True, False
        while not is_done and not self.is_spent():
            if self.one_round():
                has_gained = True
            elif has_gained and fixed < 0:
                draft.rebase(cheapest_trees_given(self._problem, draft.selection()))
                has_gained = False
            else:
                is_done = True
        return draft.selection()

    def is_spent(self) -> bool:
        """Whether the steps are used up."""
        return self.draft.steps >= self._most_steps

    def one_round(self) -> bool:
        """Try every step once; whether one gained."""
        is_better = False
        for name in sorted(self.draft.used()):
            if self.is_spent():
                return is_better
            is_better |= self._best_node(name)
        for name in sorted(self._above) if self._fixed < 0 else ():
            if self.is_spent():
                return is_better
            if not self.draft.is_used(name):
                is_better |= self._put_to_use(name)
        return is_better

    def _best_node(self, name: int) -> bool:
        """Let a class take the node with which the whole is the cheapest."""
        draft = self.draft
        if name == self._fixed or not draft.is_used(name):
            return False
        best, own = draft.cost - self._least(), draft.node(name)
        winner = own
        for node in self._problem.nodes_of(name):
            mark = draft.mark()
            if node == own or not math.isfinite(self._problem.cost[node]):
                continue
            if draft.switch(name, node):
                if draft.cost < best:
                    best, winner = draft.cost, node
                draft.undo(mark)
        if winner == own:
            return False
        draft.switch(name, winner)
        draft.keep()
        return True

    def _put_to_use(self, name: int) -> bool:
        """Let all classes that can use a class do so, if they gain together."""
        draft = self.draft
        users: dict[int, int] = {}
        for user, node in self._above[name]:
            if user != self._fixed and draft.is_used(user) and draft.node(user) != node:
                users.setdefault(user, node)
        if len(users) < 2:
            return False  # one alone is a step of the other kind
        before, mark = draft.cost, draft.mark()
        for user, node in users.items():
            if draft.is_used(user):
                draft.switch(user, node)
        if draft.cost < before - self._least():
            draft.keep()
            return True
        draft.undo(mark)
        return False

    def _least(self) -> float:
        return _LEAST_GAIN * max(1e-30, self.draft.cost)


def cheap_selections(problem: ExtractionProblem, count: int) -> tuple[Selection, ...]:
    """Up to `count` selections, the cheapest first, no two of which have nodes of equal costs.

    Raises:  ValueError where a root has no finite term.
    """
    searcher = LocalSearcher(problem)
    first = searcher.improve()
    if count == 1:
        return (first,)
    unit = _ALIKE * max(first.cost, 1e-30)
    selections = {_costs(problem, first, unit): first}
    starts = list(islice(_next_steps(searcher.draft, first), _TRIES * count))
    for name, start in starts:
        other = searcher.improve(start, name)
        selections.setdefault(_costs(problem, other, unit), other)
    return tuple(sorted(selections.values(), key=lambda each: (each.cost, each.nodes))[:count])


def _costs(problem: ExtractionProblem, selection: Selection, unit: float) -> tuple[int, ...]:
    """The costs of the nodes in ascending order, without zeros."""
    return tuple(sorted(filter(None, (round(problem.cost[n] / unit) for n in selection.nodes))))


def _next_steps(draft: Draft, best: Selection) -> Iterator[tuple[int, Selection]]:
    """Selections in which a class in use has another node, by what they add to the cost."""
    problem = draft.problem
    draft.begin(best)
    own_cost = draft.cost
    least = _ALIKE * max(own_cost, 1e-30)
    costs: list[tuple[float, int, int]] = []
    for name, own in best.choice(problem).items():
        for node in problem.nodes_of(name):
            mark = draft.mark()
            if node != own and math.isfinite(problem.cost[node]) and draft.switch(name, node):
                if abs(draft.cost - own_cost) > least:
                    costs.append((draft.cost, name, node))
                draft.undo(mark)
    for _, name, node in sorted(costs):
        mark = draft.mark()
        draft.switch(name, node)
        yield name, draft.selection()
        draft.undo(mark)
