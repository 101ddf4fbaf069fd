"""Named sizes in ONNX: nodes that compute attributes with sizes, and the bounds of sizes.

    input x: f32(n, 3)                      x (n, 3)
    reshape(x, shape=(2*n + 1, 4))          Reshape(x, Concat(2 * Shape(x)[0:1] + 1, [4]))
    n: 8 <= n, n % 8 == 0                   the property tensorwright.sizes of the model

An extent is a tensor of one element.  The nodes read inputs alone and stand before all others, so
graphs inside of nodes see what they compute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TypeAlias

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from tensorwright.base import TensorType, UnsupportedError
from tensorwright.expr import (
    Arithmetic,
    FloorDiv,
    Index,
    NamedSize,
    is_nonnegative,
    named_sizes_of,
    terms_of,
    value_of_node,
)
from tensorwright.ops import sizes_of

_Place: TypeAlias = tuple[str, int]
"""An input and one of its axes."""


@dataclass(frozen=True, slots=True)
class _Extent:
    """A tensor of one element; `apply` writes what an operator makes of it and of another."""

    name: str
    write: Callable[[str, tuple[str, ...]], str]

    def __mul__(self, other: _Extent | int) -> _Extent:
        return self if other == 1 else self.apply("Mul", other)

    def apply(self, operator: str, other: _Extent | int) -> _Extent:
        """The result of an operator of two operands."""
        second = self.write(str(other), ()) if isinstance(other, int) else other.name
        return _Extent(self.write(operator, (self.name, second)), self.write)


@dataclass(frozen=True, slots=True)
class _SizeSource:
    """The source of a size: (an extent - rest) / factor."""

    extent: Index
    rest: Index
    factor: int


@dataclass
class SizeTensors:
    """The tensors that hold sizes of a model; mutable, lives inside one export.

    types   of the inputs, whose shapes tell the sizes       fresh   makes a name that nothing has
    """

    types: Mapping[str, TensorType]
    fresh: Callable[[str], str]
    nodes: list[NodeProto] = field(default_factory=list)
    initializers: list[TensorProto] = field(default_factory=list)
    _places: dict[Index, _Place] = field(init=False)
    _sources: dict[Index, _SizeSource] = field(init=False)
    _names: dict[tuple[str, tuple[str, ...]], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._places = {}
        for name, type_ in self.types.items():
            for axis, extent in enumerate(sizes_of(type_)):
                self._places.setdefault(extent, (name, axis))
        self._sources = dict(_size_sources(self._places))

    def vector(self, values: Sequence[Index]) -> str:
        """The tensor of some integers and sizes, one behind the other.

        Raises:  UnsupportedError for a size that no input tells.
        """
        names = tuple(self._extent(value).name for value in values)
        return names[0] if len(names) == 1 else self._write("Concat", names, axis=0)

    def scalar(self, value: Index) -> str:
        """As `vector`, of one value and without a dimension."""
        return self._write("Squeeze", (self.vector((value,)),))

    def _extent(self, value: Index) -> _Extent:
        return _Extent(self._name(value), self._write)

    def _name(self, value: Index) -> str:
        if isinstance(value, int):
            return self._write(str(value), ())
        if value in self._places:
            name, axis = self._places[value]
            return self._write("Shape", (name,), start=axis, end=axis + 1)
        told = self._sources.get(value)
        if told is not None:
            multiple = _difference(self._extent(told.extent), told.rest, self._extent)
            return (multiple if told.factor == 1 else multiple.apply("Div", told.factor)).name
        if isinstance(value, FloorDiv) and not is_nonnegative(value.dividend):
            raise _refused(value, f"{value.dividend} may be negative, and it rounds to zero then")
        try:
            return value_of_node(value, self._extent, _EXTENTS).name
        except TypeError:
            raise _refused(value, "no input has an extent that tells it") from None

    def _write(self, operator: str, operands: tuple[str, ...], **attributes: int) -> str:
        """The result of an operator, written once; of a number, as text, without operands."""
        key = (f"{operator} {attributes}", operands)
        if key not in self._names:
            name = self._names[key] = self.fresh("size")
            if operands:
                node = helper.make_node(operator, operands, [name])
                node.attribute.extend(helper.make_attribute(*each) for each in attributes.items())
                self.nodes.append(node)
            else:
                array = np.array([int(operator)], np.int64)
                self.initializers.append(numpy_helper.from_array(array, name))
        return self._names[key]


def _size_sources(extents: Iterable[Index]) -> Iterator[tuple[NamedSize, _SizeSource]]:
    """The source of each size: an extent that is a multiple of it, and sizes with sources."""
    waiting = list(extents)
    told: set[NamedSize] = set()
    while True:
        before = len(told)
        for extent in waiting:
            unknown = [size for size in named_sizes_of(extent) if size not in told]
            if len(unknown) != 1:
                continue
            (size,) = unknown
            factor = dict(terms_of(extent)).get((size,), 0)
            rest = extent - size * factor
            if factor > 0 and size not in named_sizes_of(rest):
                told.add(size)
                yield size, _SizeSource(extent, rest, factor)
        if len(told) == before:
            return


def _difference(extent: _Extent, rest: Index, value: Callable[[Index], _Extent]) -> _Extent:
    return extent if rest == 0 else extent.apply("Sub", value(rest))


def _sum(extents: Iterable[_Extent | int]) -> _Extent:
    """The sum, the numbers last."""
    listed = list(extents)
    first, *others = sorted(listed, key=lambda each: isinstance(each, int))
    assert isinstance(first, _Extent), "a sum of numbers alone is a number"
    return reduce(lambda total, each: total.apply("Add", each), others, first)


def _applied(operator: str) -> Callable[[_Extent, _Extent], _Extent]:
    return lambda one, other: one.apply(operator, other)


_EXTENTS: Arithmetic[_Extent] = Arithmetic(
    _sum,
    _applied("Div"),
    _applied("Div"),
    _applied("Mod"),
    _applied("Min"),
    _applied("Max"),
)


def _refused(size: Index, reason: str) -> UnsupportedError:
    return UnsupportedError(
        stage="export",
        where=f"the size {size}",
        reason=f"ONNX cannot compute it: {reason}",
        remedy="give a number for each named size",
    )
