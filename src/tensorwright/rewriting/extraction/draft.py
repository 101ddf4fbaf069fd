"""A selection that is changed step by step, with its use counts and its cost.

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

from dataclasses import dataclass

from tensorwright.rewriting.extraction.problem import (
    Choice,
    ExtractionProblem,
    Selection,
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
        """Take a node for a class that is used; False, and nothing is changed, where it cannot be
        computed or the class would need itself.
        """
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
