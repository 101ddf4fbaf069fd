"""Axioms in proofs over more dimensions than those for which they are validated.

    conv3d[1, 1, 1, same, none](?x, concat[0](?v, ?w)) == ...      tensors of rank 5
    used in its proof       split0[1, v.0](concat[1](?a, ?b)) == ?a at rank 5
    which follows from      split0[1, v.0](concat[1](?a, ?b)) == ?a at rank 3, see `ranks.py`

Axioms of operators whose tensors have more dimensions (`most_dimensions`) are validated for them.
Any other axiom that a proof used at such ranks becomes a rule to be proved: at these ranks, for the
shapes of its arguments, with the sizes of the instance left open.
"""

from __future__ import annotations

from tensorwright.expr import IndexExpr
from tensorwright.rewriting.assumptions import assume
from tensorwright.rewriting.dims import Extent, Size
from tensorwright.rewriting.meaning import infer, symbolic_shape
from tensorwright.rewriting.prove.instances import Instance, concrete_rule
from tensorwright.rewriting.prove.parameters import Values, places_of
from tensorwright.rewriting.prove.problem import Problem, most_dimensions
from tensorwright.rewriting.shapes import fitting
from tensorwright.rewriting.terms import Equal, Fact, Param, rename_rule


def is_validated(instance: Instance) -> bool:
    """Whether the axiom was validated for tensors of as many dimensions."""
    ranks = (rank for _, rank in instance.ranks)
    return max(ranks, default=0) <= most_dimensions(instance.rewrite.rule)


def instance_problem(instance: Instance, problem: Problem) -> Problem:
    """The axiom as a rule to be proved, at the ranks of an instance in the proof of a problem."""
    own = {name: f"of {name}" for name, _ in instance.ranks}
    rule = rename_rule(instance.rewrite.rule, own)
    values, sizes = _opened_sizes(instance)
    args = [term for _, term in instance.args]
    typing = fitting(infer(args, dict(problem.shapes)))
    facts: list[Fact] = [*problem.facts, *typing.facts]
    facts += (Equal(Extent(name, 0), size) for name, size in sizes.items())
    facts += (
        Equal(Extent(own[name], axis), extent)
        for (name, _), shape in zip(instance.args, typing.shapes, strict=True)
        for axis, extent in enumerate(shape)
    )
    assumptions = assume(tuple(dict.fromkeys(facts)))
    assert assumptions is not None, "the problem is not absurd, and names of extents are new"
    shapes = tuple((own[name], symbolic_shape(own[name], rank)) for name, rank in instance.ranks)
    return Problem(concrete_rule(rule, values), shapes, tuple(facts), assumptions)


def _opened_sizes(instance: Instance) -> tuple[Values, dict[str, Size]]:
    """What the axiom's parameter variables stand for, with each size that is not a number left
    open; and what those stand for.
    """
    places = places_of(instance.rewrite.rule)
    values: Values = {}
    sizes: dict[str, Size] = {}
    for name, value in instance.params:
        listed: list[Param] = []
        for at, each in enumerate(value if isinstance(value, tuple) else (value,)):
            if not isinstance(each, IndexExpr):
                listed.append(each)
                continue
            open_name = f"{name}:{at}_"
            less = 0 if any(parameter.least for parameter, _ in places[name]) else 1
            listed.append(Extent(open_name, 0) - less)
            sizes[open_name] = each + less
        values[name] = tuple(listed)
    return values, sizes
