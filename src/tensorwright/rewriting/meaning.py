"""Shapes and values of terms: `infer` for any sizes, `evaluate_term` over any number domain.

infer((matmul(?x, ?y),), symbolic shapes)    shape (x.0, y.1) where x.1 = y.0
infer_shapes((relu(?x),), {"x": (2, 3)})     ((2, 3),)
evaluate_terms((relu(?x),), {"x": array})    (the array with 0 for what is less,)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tensorwright import expr
from tensorwright.base import DType
from tensorwright.ops import operator as ops_operator
from tensorwright.rewriting import terms
from tensorwright.rewriting.assumptions import IllTyped, Misfit, Needs, fitting
from tensorwright.rewriting.dims import Extent, Shape, Size
from tensorwright.rewriting.operators import IntShape, Step, follow, operator_named
from tensorwright.rewriting.terms import applications

_DTYPE = DType.F64
_READY, _NUMBERED = 4096, 1024
"""How many applications at given shapes are kept ready, and how many roots with numbers."""


@dataclass(frozen=True, slots=True)
class Typing:
    """The shapes of some roots, and the facts that the extents of the inputs must satisfy.

    choices  (own, wanted) sizes: the first must be 1, or equal to the second
    """

    shapes: tuple[Shape, ...]
    facts: tuple[terms.Fact, ...]
    choices: tuple[tuple[Size, Size], ...] = ()


def symbolic_shape(name: str, rank: int) -> Shape:
    """The shape of an input whose extents are open: (x.0, x.1, ...)."""
    return tuple(Extent(name, axis) for axis in range(rank))


def symbolic_shapes(shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    """Shapes of the same ranks whose extents are open."""
    return {name: symbolic_shape(name, len(shape)) for name, shape in shapes.items()}


def infer(roots: Sequence[terms.Term], shapes: Mapping[str, Shape]) -> Typing | Misfit:
    """The shapes of terms from those of their inputs, symbolic or not; or why there are none."""
    needs = Needs()
    shape_of = _all_shapes(roots, shapes, needs)
    if isinstance(shape_of, Misfit):
        return shape_of
    return Typing(tuple(shape_of[root] for root in roots), needs.facts, needs.choices)


def _all_shapes(
    roots: Sequence[terms.Term], shapes: Mapping[str, Shape], needs: Needs
) -> dict[terms.Term, Shape] | Misfit:
    missing = [name for name in terms.input_names(*roots) if name not in shapes]
    if missing:
        return Misfit(f"input {missing[0]} has no shape")
    shape_of: dict[terms.Term, Shape] = {terms.Input(name): shape for name, shape in shapes.items()}
    for each in applications(*roots):
        args = tuple(shape_of[arg] for arg in each.args)
        shape = operator_named(each.operator).result(each.params, args, needs)
        if isinstance(shape, Misfit):
            return shape
        shape_of[each] = shape
    return shape_of


def infer_shapes(
    roots: Sequence[terms.Term], shapes: Mapping[str, IntShape]
) -> tuple[IntShape, ...] | Misfit:
    """The shapes of terms at concrete extents, or why there are none."""
    numbered = _numbered(tuple(roots), tuple(shapes.items()))
    if isinstance(numbered, Misfit):
        return numbered
    return tuple(_concrete(numbered.shapes[root]) for root in numbered.roots)


@dataclass(frozen=True, slots=True)
class _Numbered:
    """Terms at concrete extents.

    roots         with numbers for sizes
    applications  of all of them, arguments first
    shapes        of each term
    """

    roots: tuple[terms.Term, ...]
    applications: tuple[terms.Apply, ...]
    shapes: Mapping[terms.Term, Shape]


@lru_cache(maxsize=_NUMBERED)
def _numbered(
    roots: tuple[terms.Term, ...], shapes: tuple[tuple[str, IntShape], ...]
) -> _Numbered | Misfit:
    """Remembered, because a term that is well-typed at some shapes is then evaluated there."""
    shapes_so_far = dict(shapes)
    numbered: list[terms.Term] = []
    for root in roots:
        term = instantiate(root, shapes_so_far)
        if isinstance(term, Misfit):
            return term
        numbered.append(term)
    shape_of = _all_shapes(numbered, shapes_so_far, Needs())
    if isinstance(shape_of, Misfit):
        return shape_of
    if not all(isinstance(extent, int) for shape in shape_of.values() for extent in shape):
        return Misfit("a size is not a number")
    return _Numbered(tuple(numbered), applications(*numbered), shape_of)


def _concrete(shape: Shape) -> IntShape:
    extents = tuple(extent for extent in shape if isinstance(extent, int))
    assert len(extents) == len(shape), "terms at concrete extents have concrete shapes"
    return extents


def instantiate(term: terms.Term, shapes: Mapping[str, IntShape]) -> terms.Term | Misfit:
    """The term with sizes in its parameters computed; none where an extent is missing."""

    def extent_of(extent: Extent) -> int:
        shape = shapes.get(extent.name, ())
        if extent.axis >= len(shape):
            raise IllTyped(f"there is no extent {extent}")
        return shape[extent.axis]

    try:
        return terms.substitute(term, {}, extent_of)
    except IllTyped as fault:
        return Misfit(str(fault))
    except ZeroDivisionError:
        return Misfit("a size is divided by zero")


def tensor_of(term: terms.Apply, arguments: tuple[expr.Tensor, ...]) -> expr.Compute:
    """The tensor expression of one application on tensors that fit it, its parameters numbers."""
    operator = operator_named(term.operator)
    shapes = tuple(_concrete(tensor.shape) for tensor in arguments)
    fitting(operator.result(term.params, shapes, Needs()))
    (result,) = follow(operator.meaning(term.params, shapes), arguments, _applied)
    assert isinstance(result, expr.Compute), "a chain of steps has at least one"
    return result


def _applied(step: Step, arguments: tuple[expr.Tensor, ...]) -> expr.Compute:
    target = ops_operator(step.operator)
    assert target.meaning is not None, "operators of rules mean operators with expressions"
    return target.meaning(arguments, target.complete(step.attributes))[0]


def evaluate_terms(
    roots: Sequence[terms.Term],
    inputs: Mapping[str, expr.Array],
    domain: expr.Domain = expr.NUMPY,
) -> tuple[expr.Array, ...]:
    """The values of terms at concrete inputs that fit them, over a number domain."""
    shapes = {name: array.shape for name, array in inputs.items()}
    numbered = fitting(_numbered(tuple(roots), tuple(shapes.items())))
    arrays: dict[terms.Term, expr.Array] = {
        terms.Input(name): domain.inject(array, _DTYPE) for name, array in inputs.items()
    }
    for each in numbered.applications:
        values = [arrays[arg] for arg in each.args]
        ready = _ready(each.operator, each.params, tuple(value.shape for value in values))
        arrays[each] = ready.value(values, domain)
    return tuple(arrays[root] for root in numbered.roots)


@dataclass(frozen=True, slots=True)
class _Ready:
    """An application at given shapes of its arguments, ready to be evaluated at any values."""

    arguments: tuple[expr.Placeholder, ...]
    steps: tuple[expr.Prepared, ...]

    def value(self, values: Sequence[expr.Array], domain: expr.Domain) -> expr.Array:
        arrays: dict[expr.Tensor, expr.Array] = dict(zip(self.arguments, values, strict=True))
        for step in self.steps:
            arrays[step.tensor] = step.value(arrays, domain)
        return arrays[self.steps[-1].tensor]


@lru_cache(maxsize=_READY)
def _ready(operator: str, params: tuple[terms.Param, ...], shapes: tuple[IntShape, ...]) -> _Ready:
    """Remembered, because random trials evaluate the same operators at few shapes many times."""
    arguments = tuple(expr.placeholder(f"a{n}", shape, _DTYPE) for n, shape in enumerate(shapes))
    result = tensor_of(terms.Apply(operator, params, ()), arguments)
    order = (each for each in expr.topological_order(result) if isinstance(each, expr.Compute))
    return _Ready(arguments, tuple(map(expr.Prepared, order)))
