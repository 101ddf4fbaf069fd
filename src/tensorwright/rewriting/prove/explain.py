"""Proofs for people and for Z3: chains of terms, and the instances of axioms.

split0[0, x.0](concat[0](?x, ?y))
by split-of-concat                 the instance: _axis = 0, ?x and ?y of rank 2
?x
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tensorwright.expr import IndexExpr
from tensorwright.rewriting.assumptions import Assumptions
from tensorwright.rewriting.dims import Extent, Size, atoms_of, value_of
from tensorwright.rewriting.egraph import (
    Application,
    Chain,
    Goal,
    Runner,
    chain_between,
    used_applications,
)
from tensorwright.rewriting.prove.instances import Instance
from tensorwright.rewriting.prove.saturate import Saturation
from tensorwright.rewriting.terms import Param, Term, with_params


def instances_of(proof: Saturation) -> tuple[Instance, ...]:
    """The axiom instances of the proof, in the order in which they were found."""
    graph = proof.runner.graph

    def instance(application: Application) -> Instance:
        nodes = sorted(application.nodes.items())
        return Instance(
            rewrite=application.rewrite,
            ranks=tuple((name, len(graph.data(node))) for name, node in nodes),
            args=tuple((name, graph.term(node)) for name, node in nodes),
            params=tuple(sorted(application.params.items(), key=lambda item: item[0])),
            left=graph.term(application.left),
            right=graph.term(application.right),
        )

    return tuple(map(instance, used_applications(proof.runner, proof.goal)))


def chains_of(runner: Runner[Any], goal: Goal, assumptions: Assumptions) -> tuple[Chain, ...]:
    """For each pair of roots the chain of terms from the left one to the right one."""
    readable = _Readable(assumptions)
    return tuple(
        tuple(
            replace(step, before=readable.term(step.before), after=readable.term(step.after))
            for step in chain_between(runner, left, right)
        )
        for left, right in goal
    )


class _Readable:
    """Replaces the fresh extents that solving introduced by extents of inputs."""

    def __init__(self, assumptions: Assumptions) -> None:
        self._whole: dict[Param, Param] = {}
        self._parts: dict[Extent, Size] = {}
        for extent, size in assumptions.quotients:
            mark = f"_{extent.name}{extent.axis}_"
            own = next((e for e in atoms_of(size) if e.name.startswith(mark)), None)
            if own is not None and isinstance(size, IndexExpr):
                self._whole[size] = extent
                self._parts[own] = extent // (size // own)

    def term(self, term: Term) -> Term:
        return with_params(term, lambda param: (self._param(param),))

    def _param(self, param: Param) -> Param:
        if not isinstance(param, IndexExpr):
            return param
        whole = self._whole.get(param)
        if whole is not None:
            return whole
        parts = dict(self._parts)  # each is put in once: they may contain each other
        while any(extent in parts for extent in atoms_of(param)):
            values = {each: parts.pop(each, each) for each in atoms_of(param)}
            param = value_of(param, values)
        return param
