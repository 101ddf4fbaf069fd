"""Why two nodes are equal: the applications of a proof, and the chain of terms.

ewadd(relu(relu(?x)), ?y)
by relu-relu                       an instance of a rewrite inside an argument
ewadd(relu(?x), ?y)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from tensorwright.rewriting.egraph.egraph import Id
from tensorwright.rewriting.egraph.saturation import Application, Goal, Runner
from tensorwright.rewriting.terms import Apply, Term


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a chain: the term before, the rule and its direction, the term after.

    forward  whether the rule was read from left to right
    """

    before: Term
    rule: str
    forward: bool
    after: Term


Chain: TypeAlias = tuple[Step, ...]


def used_applications(runner: Runner[Any], goal: Goal) -> tuple[Application, ...]:
    """The applications that the equality of all pairs needs, in the order in which they came."""
    graph = runner.graph
    used: set[int] = set()
    seen: set[tuple[Id, Id]] = set()
    waiting = list(goal)
    while waiting:
        left, right = waiting.pop()
        if left == right or (left, right) in seen:
            continue
        seen.add((left, right))
        for link in graph.explain(left, right):
            if link.reason is not None:
                used.add(link.reason)
                continue
            waiting.extend(zip(graph.children(link.left), graph.children(link.right), strict=True))
    return tuple(runner.applications[number] for number in sorted(used))


def chain_between(runner: Runner[Any], left: Id, right: Id) -> Iterator[Step]:
    """The steps from the term of a node to that of an equal one."""
    graph = runner.graph
    for link in graph.explain(left, right) if left != right else ():
        if link.reason is None:
            yield from _inside(runner, link.left, link.right)
            continue
        application = runner.applications[link.reason]
        yield Step(
            before=graph.term(link.left),
            rule=application.rewrite.name,
            forward=link.left == application.left,
            after=graph.term(link.right),
        )


def _inside(runner: Runner[Any], left: Id, right: Id) -> Iterator[Step]:
    """The steps inside the arguments of two congruent nodes, one argument after the other."""
    graph = runner.graph
    operator, params = graph.parts(graph.head_of(left))
    ends = tuple(zip(graph.children(left), graph.children(right), strict=True))
    args = [graph.term(child) for child, _ in ends]
    for number, (one, two) in enumerate(ends):
        for step in chain_between(runner, one, two):
            before, after = (
                Apply(operator, params, (*args[:number], term, *args[number + 1 :]))
                for term in (step.before, step.after)
            )
            yield replace(step, before=before, after=after)
        args[number] = graph.term(two)
