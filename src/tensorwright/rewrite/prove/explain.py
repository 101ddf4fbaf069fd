"""Why two terms are equal: the axiom instances of a proof, and the chain of terms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tensorwright.rewrite.assumptions import Assumptions
from tensorwright.rewrite.dims import Dim, Extent, Size, atoms_of, value_of
from tensorwright.rewrite.egraph.egraph import Id
from tensorwright.rewrite.prove.instances import Instance
from tensorwright.rewrite.prove.saturate import Application, Saturation
from tensorwright.rewrite.terms import Apply, Input, Param, Term

__all__ = ["Step", "chains_of", "instances_of", "term_of"]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a chain: the term before, the axiom and its direction, the term after.

    forward  whether the axiom was read from left to right
    """

    before: Term
    axiom: str
    forward: bool
    after: Term
    reassociating: bool


def term_of(found: Saturation, name: Id) -> Term:
    """The term that a node was written as."""
    node = found.graph.graph.node(name)
    if node.operator == "?":
        return Input(str(node.params[0]))
    return Apply(node.operator, node.params, tuple(term_of(found, c) for c in node.children))


def used_applications(found: Saturation) -> tuple[int, ...]:
    """The numbers of the applications that the proof of all pairs of roots needs, sorted."""
    used: set[int] = set()
    seen: set[tuple[Id, Id]] = set()
    waiting = list(found.roots)
    graph = found.graph.graph
    while waiting:
        left, right = waiting.pop()
        if left == right or (left, right) in seen:
            continue
        seen.add((left, right))
        for link in graph.explain(left, right):
            if link.reason is not None:
                used.add(link.reason)
                continue
            ends = (graph.node(link.left), graph.node(link.right))
            waiting.extend(zip(ends[0].children, ends[1].children, strict=True))
    return tuple(sorted(used))


def instances_of(found: Saturation) -> tuple[Instance, ...]:
    """The axiom instances of the proof, in the order in which they were found."""
    return tuple(_instance(found, found.applications[n]) for n in used_applications(found))


def _instance(found: Saturation, application: Application) -> Instance:
    shape = found.graph.shape
    binding = application.binding
    return Instance(
        axiom=application.axiom,
        ranks=tuple((name, len(shape(node))) for name, node in sorted(binding.nodes.items())),
        args=tuple((name, term_of(found, node)) for name, node in sorted(binding.nodes.items())),
        params=tuple(sorted(binding.params.items(), key=lambda item: item[0])),
        left=term_of(found, application.left),
        right=term_of(found, application.right),
    )


def chains_of(found: Saturation) -> tuple[tuple[Step, ...], ...]:
    """For each pair of roots the chain of terms from the left one to the right one."""
    readable = _Readable(found.graph.known)
    return tuple(
        tuple(
            replace(step, before=readable.term(step.before), after=readable.term(step.after))
            for step in _chain(found, left, right)
        )
        for left, right in found.roots
    )


class _Readable:
    """Puts extents of inputs in the place of the fresh ones that solving introduced."""

    def __init__(self, known: Assumptions) -> None:
        self._whole: dict[Param, Param] = {}
        self._parts: dict[Extent, Size] = {}
        for extent, size in known.quotients:
            mark = f"_{extent.name}{extent.axis}_"
            own = next((e for e in atoms_of(size) if e.name.startswith(mark)), None)
            if own is not None and isinstance(size, Dim):
                self._whole[size] = Dim.of(extent)
                self._parts[own] = Dim.of(extent) // (size // Dim.of(own))

    def term(self, term: Term) -> Term:
        if isinstance(term, Input):
            return term
        params = tuple(self._param(param) for param in term.params)
        return Apply(term.operator, params, tuple(self.term(arg) for arg in term.args))

    def _param(self, param: Param) -> Param:
        if not isinstance(param, Dim):
            return param
        known = self._whole.get(param)
        if known is not None:
            return known
        parts = dict(self._parts)  # each is put in once: they may speak of each other
        while any(extent in parts for extent in atoms_of(param)):
            values = {each: parts.pop(each, Dim.of(each)) for each in atoms_of(param)}
            param = value_of(param, values)
        return param


def _chain(found: Saturation, left: Id, right: Id) -> Iterator[Step]:
    graph = found.graph.graph
    for link in graph.explain(left, right) if left != right else ():
        if link.reason is not None:
            application = found.applications[link.reason]
            yield Step(
                before=term_of(found, link.left),
                axiom=application.axiom.name,
                forward=link.left == application.left,
                after=term_of(found, link.right),
                reassociating=application.axiom.reassociating,
            )
            continue
        yield from _inside(found, link.left, link.right)


def _inside(found: Saturation, left: Id, right: Id) -> Iterator[Step]:
    """The steps inside the arguments of two congruent nodes, one argument after the other."""
    graph = found.graph.graph
    node, other = graph.node(left), graph.node(right)
    args = [term_of(found, child) for child in node.children]
    for place, (one, two) in enumerate(zip(node.children, other.children, strict=True)):
        for step in _chain(found, one, two):
            before = (*args[:place], step.before, *args[place + 1 :])
            after = (*args[:place], step.after, *args[place + 1 :])
            yield replace(
                step,
                before=Apply(node.operator, node.params, before),
                after=Apply(node.operator, node.params, after),
            )
        args[place] = term_of(found, two)
