"""The structure of an operator on flat tensors of residues, derived from its meaning.

    structure_of("transpose", (1, 0), ((2, 3),))     Linear: a permutation matrix (6, 6)
    structure_of("matmul", (), ((2, 3), (3, 4)))     Bilinear: 12 sums of 3 products of places
    structure_of("relu", (), ((2, 3),))              Pointwise

    Linear    out = sum over arguments of matrix @ argument      concat, transpose, sums, pooling
    Bilinear  out[o] = sum over t of a[left[o, t]] * b[right[o, t]]     matmul, conv, product
    Pointwise out = f(x), one element at a time                  relu, exp
    Window    out[o] = max over t of x[places[o, t]]             max_pool
    Affine    out[o] = x[o] * scale[o] + shift[o], the two from further arguments    batch_norm
    Direct    no structure is known: it is evaluated for each value                 softmax

Each is derived by evaluating the tensor expression on tensors whose elements are their positions,
so that this module repeats nothing about any operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright import expr
from tensorwright.base import DType
from tensorwright.expr import Apply as ApplyValue
from tensorwright.rewriting.meaning import tensor_of
from tensorwright.rewriting.operators import IntShape
from tensorwright.rewriting.terms import Apply, Param
from tensorwright_lab.rule_generation.fingerprint.field import Numbers, P, packed, reduce, relu
from tensorwright_lab.rule_generation.fingerprint.field_domain import FieldDomain
from tensorwright_lab.rule_generation.fingerprint.field_domain import residues as residues_of
from tensorwright_lab.rule_generation.operator_facts import StructureKind, facts_of_operator

Places: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """No arguments: the value."""

    value: Numbers


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """One matrix (out, in) of residues per argument."""

    matrices: tuple[Numbers, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Bilinear:
    """Sums of products; a place that is one past the end of its argument stands for zero.

    is_relu        the stand-in of relu is applied to the sum
    inverts_right  1 / b takes the place of b
    """

    left: Places
    right: Places
    is_relu: bool = False
    inverts_right: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Pointwise:
    """A function of single elements."""

    operator: str
    params: tuple[Param, ...]

    def apply(self, numbers: NDArray[Any]) -> Numbers:
        """Its values at residues; functions that the field lacks are random ones there."""
        probe = Probe(self.operator, self.params, (numbers.shape,))
        match probe.tensor.body:
            case ApplyValue(expr.Fn.MAX, (expr.Load(), expr.Const(0))):
                return relu(numbers)
            case _:
                return probe.residues((packed(numbers),)).reshape(numbers.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """The greatest of some elements; a place that is one past the end counts for nothing."""

    places: Places


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """Each element times a number, plus a number; the numbers follow from further arguments."""

    probe: Probe

    def scale_and_shift(self, operands: Sequence[NDArray[Any]]) -> tuple[Numbers, Numbers]:
        """The two numbers of each element, where the further arguments are these residues."""
        numbers = [packed(each) for each in operands]
        size = self.probe.sizes[0]
        shift = self.probe.residues((np.zeros(size), *numbers))
        total = self.probe.residues((np.ones(size), *numbers))
        return reduce(total + (np.uint64(P) - shift)), shift


@dataclass(frozen=True, slots=True, eq=False)
class Direct:
    """An operator without a structure to use."""

    probe: Probe

    def apply(self, arguments: Sequence[NDArray[Any]]) -> Numbers:
        """Its values at residues (count, samples, size of each argument), one by one."""
        counts = np.broadcast_shapes(*(each.shape[:2] for each in arguments))
        spread = [packed(np.broadcast_to(a, (*counts, a.shape[2]))) for a in arguments]
        rows = [
            self.probe.residues(tuple(each[at] for each in spread)) for at in np.ndindex(counts)
        ]
        return np.stack(rows).reshape(*counts, -1)


Structure: TypeAlias = Constant | Linear | Bilinear | Pointwise | Window | Affine | Direct

LINEAR_KINDS = frozenset({StructureKind.GATHER, StructureKind.LINEAR, StructureKind.PLANE_SUM})
"""The kinds whose structure is `Linear`; those of `Bilinear` follow."""
BILINEAR_KINDS = frozenset(
    {StructureKind.BILINEAR, StructureKind.CONVOLUTION, StructureKind.QUOTIENT}
)
_EXACT_BITS = 52


def has_relu(kind: StructureKind, params: tuple[Param, ...]) -> bool:
    """Whether relu is part of a convolution."""
    return kind is StructureKind.CONVOLUTION and params[-1] == "relu"


@cache
def structure_of(
    operator: str, params: tuple[Param, ...], shapes: tuple[IntShape, ...]
) -> Structure:
    """The structure of one application at concrete shapes."""
    kind = facts_of_operator(operator).structure
    if has_relu(kind, params):
        plain = structure_of(operator, (*params[:-1], "none"), shapes)
        assert isinstance(plain, Bilinear)
        return replace(plain, is_relu=True)
    if kind is StructureKind.CONVOLUTION and _is_repeated(shapes):
        return _for_each_image_and_channel(operator, params, shapes)
    is_planar = kind in (StructureKind.PLANE_SUM, StructureKind.PLANE_MAXIMUM)
    if is_planar and shapes[0][:2] != (1, 1):
        return _on_each_plane(structure_of(operator, params, ((1, 1, *shapes[0][2:]),)), shapes[0])
    probe = Probe(operator, params, shapes)
    match kind:
        case StructureKind.CONSTANT:
            return Constant(probe.residues(()))
        case StructureKind.GATHER:
            return Linear(probe.gather_matrices())
        case StructureKind.LINEAR | StructureKind.PLANE_SUM:
            return Linear(probe.matrices())
        case StructureKind.BILINEAR | StructureKind.CONVOLUTION:
            return Bilinear(*probe.products())
        case StructureKind.QUOTIENT:
            return Bilinear(*probe.products(), inverts_right=True)
        case StructureKind.POINTWISE:
            return Pointwise(operator, params)
        case StructureKind.PLANE_MAXIMUM | StructureKind.MAXIMUM:
            return Window(probe.window_places())
        case StructureKind.AFFINE:
            return Affine(probe)
        case StructureKind.ANY:
            return Direct(probe)


def _is_repeated(shapes: tuple[IntShape, ...]) -> bool:
    """Whether a convolution without groups has several images, or several output channels."""
    (images, channels, *_), (outputs, own, *_) = shapes
    return channels == own and (images, outputs) != (1, 1)


def _for_each_image_and_channel(
    operator: str, params: tuple[Param, ...], shapes: tuple[IntShape, ...]
) -> Bilinear:
    """A convolution of several images to several channels, from that of one to one."""
    x, w = shapes
    one = structure_of(operator, params, ((1, *x[1:]), (1, *w[1:])))
    assert isinstance(one, Bilinear)
    image, kernel = prod(x[1:]), prod(w[1:])
    left = [np.where(one.left == image, x[0] * image, one.left + n * image) for n in range(x[0])]
    right = [
        np.where(one.right == kernel, w[0] * kernel, one.right + n * kernel) for n in range(w[0])
    ]
    return Bilinear(
        np.concatenate([part for part in left for _ in right]),
        np.concatenate([part for _ in left for part in right]),
    )


def _on_each_plane(structure: Structure, shape: IntShape) -> Structure:
    """Pooling of every channel, from pooling of one."""
    count, size = shape[0] * shape[1], shape[2] * shape[3]
    if isinstance(structure, Linear):
        return Linear((np.kron(np.eye(count, dtype=np.uint64), structure.matrices[0]),))
    assert isinstance(structure, Window)
    planes = [
        np.where(structure.places == size, count * size, structure.places + plane * size)
        for plane in range(count)
    ]
    return Window(np.concatenate(planes))


class Probe:
    """One application as a tensor expression, evaluated on chosen arguments."""

    def __init__(
        self, operator: str, params: tuple[Param, ...], shapes: tuple[IntShape, ...]
    ) -> None:
        self.sizes = tuple(map(prod, shapes))
        self.shapes = shapes
        self.inputs: tuple[expr.Placeholder, ...] = tuple(
            expr.placeholder(f"x{at}", shape, DType.F64) for at, shape in enumerate(shapes)
        )
        self.tensor: expr.Compute = tensor_of(Apply(operator, params, ()), self.inputs)

    def numbers(self, arguments: tuple[NDArray[Any], ...]) -> NDArray[np.float64]:
        """The flat result in doubles."""
        return np.asarray(self._value(arguments, expr.NUMPY), np.float64).ravel()

    def residues(self, arguments: tuple[NDArray[Any], ...]) -> Numbers:
        """The flat result in the field."""
        value = self._value(arguments, FieldDomain())
        return (residues_of(value).ravel() % P).astype(np.uint64)

    def _value(self, arguments: tuple[NDArray[Any], ...], domain: expr.Domain) -> expr.Array:
        shaped = (each.reshape(s) for each, s in zip(arguments, self.shapes, strict=True))
        arrays = dict(zip(self.inputs, shaped, strict=True))
        return expr.evaluate([self.tensor], arrays, domain)[0]

    def gather_matrices(self) -> tuple[Numbers, ...]:
        """Every element of the result is an element of each argument, its negative, or zero."""
        matrices = []
        for at, size in enumerate(self.sizes):
            arguments = [np.zeros(n) for n in self.sizes]
            arguments[at] = np.arange(1.0, size + 1)
            places = self.numbers(tuple(arguments)).astype(np.int64)
            matrix = np.zeros((len(places), size + 1), np.uint64)
            matrix[np.arange(len(places)), abs(places)] = np.where(places < 0, P - 1, 1)
            matrices.append(matrix[:, 1:])
        return tuple(matrices)

    def matrices(self) -> tuple[Numbers, ...]:
        """Column by column; in doubles, then each distinct factor once in the field."""
        matrices = []
        for at, size in enumerate(self.sizes):
            units = [self._unit(at, element) for element in range(size)]
            table = np.stack([self.numbers(unit) for unit in units], axis=1)
            matrix = np.zeros(table.shape, np.uint64)
            for factor in np.unique(table[table != 0]):
                row, column = np.argwhere(table == factor)[0]
                matrix[table == factor] = self.residues(units[column])[row]
            matrices.append(matrix)
        return tuple(matrices)

    def _unit(self, at: int, element: int) -> tuple[NDArray[np.float64], ...]:
        arguments = tuple(np.zeros(size) for size in self.sizes)
        arguments[at][element] = 1
        return arguments

    def products(self) -> tuple[Places, Places]:
        """The places of the factors of each result, as (out, products) for either argument."""
        ones = tuple(np.ones(size) for size in self.sizes)
        if self.numbers(ones).max() <= 1:  # single products
            marks = [np.arange(1.0, size + 1) for size in self.sizes]
            left = self.numbers((marks[0], ones[1]))
            right = self.numbers((ones[0], marks[1]))
            if right.max() <= 1:  # a quotient
                right = np.round(1 / right)
            return left.astype(np.int64)[:, None] - 1, right.astype(np.int64)[:, None] - 1
        if self._runs(0, 1) <= self._runs(1, 0):
            return self._coded(0, 1)
        right_places, left_places = self._coded(1, 0)
        return left_places, right_places

    def _runs(self, marked: int, coded: int) -> int:
        digits = _EXACT_BITS // (self.sizes[marked] + 1).bit_length()
        return -(-self.sizes[coded] // digits)

    def _coded(self, marked: int, coded: int) -> tuple[Places, Places]:
        """Marks 1, 2, ... in one argument, powers of a base in the other, a few at a time.

        The digits of the result are then 1 + the places in the marked argument.
        """
        size, bits = self.sizes[coded], (self.sizes[marked] + 1).bit_length()
        arguments = [np.zeros(n) for n in self.sizes]
        arguments[marked] = np.arange(1.0, self.sizes[marked] + 1)
        columns = []
        for first in range(0, size, _EXACT_BITS // bits):
            arguments[coded] = np.zeros(size)
            chosen = arguments[coded][first : first + _EXACT_BITS // bits]
            shifts = bits * np.arange(len(chosen))
            chosen[:] = 2.0**shifts
            result = self.numbers((arguments[0], arguments[1])).astype(np.int64)
            columns.append((result[:, None] >> shifts) & ((1 << bits) - 1))
        return _compress(np.concatenate(columns, axis=1), self.sizes[marked])

    def window_places(self) -> Places:
        """The places of a window: where a mark is the greatest of the window."""
        (size,) = self.sizes
        columns = []
        for element in range(size):
            x = np.zeros(size)
            x[element] = 1
            columns.append(self.numbers((x,)) > 0)
        table = np.where(np.stack(columns, axis=1), np.arange(1, size + 1), 0)
        return _compress(table, size)[0]


def _compress(table: NDArray[np.int64], size: int) -> tuple[Places, Places]:
    """The filled cells of a table (out, columns) of 1 + place: places and columns, row by row."""
    count = int((table > 0).sum(axis=1).max())
    order = np.argsort(table == 0, axis=1, kind="stable")[:, :count]
    chosen = np.take_along_axis(table, order, axis=1)
    is_empty = chosen == 0
    return np.where(is_empty, size, chosen - 1), np.where(is_empty, table.shape[1], order)
