"""Shapes and values of terms: `infer` for any sizes, `evaluate_term` over any number domain.

infer((matmul(?x, ?y),), symbolic shapes)    shape (x.0, y.1) where x.1 = y.0
infer_shapes((relu(?x),), {"x": (2, 3)})     ((2, 3),)
evaluate_terms((relu(?x),), {"x": array})    (the array with 0 for what is less,)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tensorwright.base import DType
from tensorwright.expr import (
    NUMPY,
    Array,
    Compute,
    Domain,
    Placeholder,
    Prepared,
    Tensor,
    placeholder,
    topological_order,
)
from tensorwright.ops import operator as ops_operator
from tensorwright.rewriting.dims import Dim, Extent, Shape, Size
from tensorwright.rewriting.operators import IntShape, Step, follow, operator_named
from tensorwright.rewriting.shapes import IllTyped, Needs
from tensorwright.rewriting.terms import (
    Apply,
    Fact,
    Input,
    Param,
    Term,
    applications,
    input_names,
    substitute,
)

_READY, _NUMBERED = 4096, 1024
"""How many applications at given shapes are kept ready, and how many roots with numbers."""


@dataclass(frozen=True, slots=True)
class Typing:
    """The shapes of some roots, and what the extents of the inputs must satisfy for them.

    choices  (own, wanted) sizes: the first must be 1, or equal to the second
    """

    shapes: tuple[Shape, ...]
    facts: tuple[Fact, ...]
    choices: tuple[tuple[Size, Size], ...] = ()


def symbolic_shape(name: str, rank: int) -> Shape:
    """The shape of an input whose extents are open: (x.0, x.1, ...)."""
    return tuple(Dim.of(Extent(name, axis)) for axis in range(rank))


def infer(roots: Sequence[Term], shapes: Mapping[str, Shape]) -> Typing:
    """The shapes of terms from the shapes of their inputs, concrete or symbolic or mixed.

    Raises:  IllTyped where an operator does not fit its arguments, an input has no shape.
    """
    needs = Needs()
    known = _all_shapes(roots, shapes, needs)
    return Typing(tuple(known[root] for root in roots), needs.facts, needs.choices)


def _all_shapes(
    roots: Sequence[Term], shapes: Mapping[str, Shape], needs: Needs
) -> dict[Term, Shape]:
    missing = [name for name in input_names(*roots) if name not in shapes]
    if missing:
        raise IllTyped(f"input {missing[0]} has no shape")
    known: dict[Term, Shape] = {Input(name): shape for name, shape in shapes.items()}
    for each in applications(*roots):
        operator = operator_named(each.operator)
        if len(each.args) != operator.arity:
            raise IllTyped(f"{each.operator} takes {operator.arity} arguments")
        operator.check_params(each.params)
        known[each] = operator.shape(each.params, tuple(known[arg] for arg in each.args), needs)
    return known


def infer_shapes(roots: Sequence[Term], shapes: Mapping[str, IntShape]) -> tuple[IntShape, ...]:
    """The shapes of terms at concrete extents; sizes in parameters become numbers.

    Raises:  IllTyped
    """
    numbered = _numbered(tuple(roots), tuple(shapes.items()))
    return tuple(_concrete(numbered.shapes[root]) for root in numbered.roots)


@dataclass(frozen=True, slots=True)
class _Numbered:
    """Terms at concrete extents.

    roots         with numbers for sizes
    applications  of all of them, arguments first
    shapes        of each term
    """

    roots: tuple[Term, ...]
    applications: tuple[Apply, ...]
    shapes: Mapping[Term, Shape]


@lru_cache(maxsize=_NUMBERED)
def _numbered(roots: tuple[Term, ...], shapes: tuple[tuple[str, IntShape], ...]) -> _Numbered:
    """Kept for some: what is well-typed at some shapes is then evaluated there.

    Raises:  IllTyped
    """
    known = dict(shapes)
    numbered = tuple(instantiate(root, known) for root in roots)
    return _Numbered(numbered, applications(*numbered), _all_shapes(numbered, known, Needs()))


def _concrete(shape: Shape) -> IntShape:
    found = tuple(extent for extent in shape if isinstance(extent, int))
    if len(found) != len(shape):
        raise IllTyped(f"shape {shape} is not concrete")
    return found


def instantiate(term: Term, shapes: Mapping[str, IntShape]) -> Term:
    """The term with the sizes in its parameters computed.

    Raises:  IllTyped for an extent that no input has.
    """

    def extent_of(extent: Extent) -> int:
        shape = shapes.get(extent.name, ())
        if extent.axis >= len(shape):
            raise IllTyped(f"there is no extent {extent}")
        return shape[extent.axis]

    return substitute(term, {}, extent_of)


def tensor_of(term: Apply, arguments: tuple[Tensor, ...]) -> Compute:
    """The tensor expression of one application on tensors, its parameters numbers.

    Raises:  IllTyped
    """
    operator = operator_named(term.operator)
    shapes = tuple(_concrete(_extents(tensor)) for tensor in arguments)
    operator.shape(term.params, shapes, Needs())
    (result,) = follow(operator.meaning(term.params, shapes), arguments, _applied)
    assert isinstance(result, Compute), "a chain of steps has at least one"
    return result


def _applied(step: Step, arguments: tuple[Tensor, ...]) -> Compute:
    target = ops_operator(step.operator)
    if target.meaning is None:
        raise IllTyped(f"{step.operator} has no tensor expression")
    return target.meaning(arguments, target.complete(step.attributes))[0]


def _extents(tensor: Tensor) -> Shape:
    return tuple(extent if isinstance(extent, int) else -1 for extent in tensor.shape)


def evaluate_terms(
    roots: Sequence[Term],
    inputs: Mapping[str, Array],
    domain: Domain = NUMPY,
    dtype: DType = DType.F64,
) -> tuple[Array, ...]:
    """The values of terms at concrete inputs, over a number domain.

    Raises:  IllTyped where the shapes do not fit.
    """
    shapes = {name: array.shape for name, array in inputs.items()}
    numbered = _numbered(tuple(roots), tuple(shapes.items()))
    arrays: dict[Term, Array] = {
        Input(name): domain.inject(array, dtype) for name, array in inputs.items()
    }
    for each in numbered.applications:
        values = [arrays[arg] for arg in each.args]
        ready = _ready(each.operator, each.params, tuple(value.shape for value in values), dtype)
        arrays[each] = ready.value(values, domain)
    return tuple(arrays[root] for root in numbered.roots)


@dataclass(frozen=True, slots=True)
class _Ready:
    """An application at given shapes of its arguments, ready to be evaluated at any values."""

    arguments: tuple[Placeholder, ...]
    steps: tuple[Prepared, ...]

    def value(self, values: Sequence[Array], domain: Domain) -> Array:
        arrays: dict[Tensor, Array] = dict(zip(self.arguments, values, strict=True))
        for step in self.steps:
            arrays[step.tensor] = step.value(arrays, domain)
        return arrays[self.steps[-1].tensor]


@lru_cache(maxsize=_READY)
def _ready(
    operator: str, params: tuple[Param, ...], shapes: tuple[IntShape, ...], dtype: DType
) -> _Ready:
    """Found out once: random trials evaluate the same operators at few shapes again and again."""
    arguments = tuple(placeholder(f"a{n}", shape, dtype) for n, shape in enumerate(shapes))
    result = tensor_of(Apply(operator, params, ()), arguments)
    order = (each for each in topological_order(result) if isinstance(each, Compute))
    return _Ready(arguments, tuple(map(Prepared, order)))
