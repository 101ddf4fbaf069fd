"""The argument of an export rule: one node of ours, and the ONNX nodes being written for it.

Named sizes in ONNX: nodes that compute attributes with sizes, and the bounds of sizes.

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
from numpy.typing import ArrayLike
from onnx import NodeProto, TensorProto, ValueInfoProto, defs, helper, numpy_helper

from tensorwright import expr
from tensorwright.base import DType, TensorType, UnsupportedError
from tensorwright.graph.graph import Graph, Node, free_name
from tensorwright.graph.imports.counterparts import names_of
from tensorwright.graph.imports.tensors import DTYPES
from tensorwright.ops import as_size, operator, sizes_of

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

    extent: expr.Index
    rest: expr.Index
    factor: int


@dataclass
class SizeTensors:
    """The tensors that hold sizes of a model; mutable, lives inside one export.

    types   of the inputs, whose shapes tell the sizes       taken   the names that something has
    """

    types: Mapping[str, TensorType]
    taken: set[str]
    nodes: list[NodeProto] = field(default_factory=list)
    initializers: list[TensorProto] = field(default_factory=list)
    _places: dict[expr.Index, _Place] = field(init=False)
    _sources: dict[expr.Index, _SizeSource] = field(init=False)
    _names: dict[tuple[str, tuple[str, ...]], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._places = {}
        for name, type_ in self.types.items():
            for axis, extent in enumerate(sizes_of(type_)):
                self._places.setdefault(extent, (name, axis))
        self._sources = dict(_size_sources(self._places))

    def vector(self, values: Sequence[expr.Index]) -> str:
        """The tensor of some integers and sizes, one behind the other.

        Raises:  UnsupportedError for a size that no input tells.
        """
        names = tuple(self._extent(value).name for value in values)
        return names[0] if len(names) == 1 else self._write("Concat", names, axis=0)

    def scalar(self, value: expr.Index) -> str:
        """As `vector`, of one value and without a dimension."""
        return self._write("Squeeze", (self.vector((value,)),))

    def _extent(self, value: expr.Index) -> _Extent:
        return _Extent(self._name(value), self._write)

    def _name(self, value: expr.Index) -> str:
        if isinstance(value, int):
            return self._write(str(value), ())
        if value in self._places:
            name, axis = self._places[value]
            return self._write("Shape", (name,), start=axis, end=axis + 1)
        told = self._sources.get(value)
        if told is not None:
            multiple = self._extent(told.extent)
            if told.rest != 0:
                multiple = multiple.apply("Sub", self._extent(told.rest))
            return (multiple if told.factor == 1 else multiple.apply("Div", told.factor)).name
        if isinstance(value, expr.FloorDiv) and not expr.is_nonnegative(value.dividend):
            raise _refused(value, f"{value.dividend} may be negative, and it rounds to zero then")
        try:
            return expr.value_of_node(value, self._extent, _EXTENTS).name
        except TypeError:
            raise _refused(value, "no input has an extent that tells it") from None

    def _write(self, operator: str, operands: tuple[str, ...], **attributes: int) -> str:
        """The result of an operator, written once; of a number, as text, without operands."""
        key = (f"{operator} {attributes}", operands)
        if key not in self._names:
            name = self._names[key] = fresh(self.taken, "size")
            if operands:
                node = helper.make_node(operator, operands, [name])
                node.attribute.extend(helper.make_attribute(*each) for each in attributes.items())
                self.nodes.append(node)
            else:
                array = np.array([int(operator)], np.int64)
                self.initializers.append(numpy_helper.from_array(array, name))
        return self._names[key]


def _size_sources(extents: Iterable[expr.Index]) -> Iterator[tuple[expr.NamedSize, _SizeSource]]:
    """The source of each size: an extent that is a multiple of it, and sizes with sources."""
    waiting = list(extents)
    told: set[expr.NamedSize] = set()
    while True:
        before = len(told)
        for extent in waiting:
            unknown = [size for size in expr.named_sizes_of(extent) if size not in told]
            if len(unknown) != 1:
                continue
            (size,) = unknown
            factor = dict(expr.terms_of(extent)).get((size,), 0)
            rest = extent - size * factor
            if factor > 0 and size not in expr.named_sizes_of(rest):
                told.add(size)
                yield size, _SizeSource(extent, rest, factor)
        if len(told) == before:
            return


def _sum(extents: Iterable[_Extent | int]) -> _Extent:
    """The sum, the numbers last."""
    listed = list(extents)
    first, *others = sorted(listed, key=lambda each: isinstance(each, int))
    assert isinstance(first, _Extent), "a sum of numbers alone is a number"
    return reduce(lambda total, each: total.apply("Add", each), others, first)


def _applied(operator: str) -> Callable[[_Extent, _Extent], _Extent]:
    return lambda one, other: one.apply(operator, other)


_EXTENTS: expr.Arithmetic[_Extent] = expr.Arithmetic(
    _sum,
    _applied("Div"),
    _applied("Div"),
    _applied("Mod"),
    _applied("Min"),
    _applied("Max"),
)


def _refused(size: expr.Index, reason: str) -> UnsupportedError:
    return UnsupportedError(
        stage="export",
        where=f"the size {size}",
        reason=f"ONNX cannot compute it: {reason}",
        remedy="give a number for each named size",
    )


ONNX_DTYPES = {ours: theirs for theirs, ours in DTYPES.items()}
OnnxValue: TypeAlias = int | float | str | Sequence[int] | Sequence[float]


def value_info(name: str, type_: TensorType) -> ValueInfoProto:
    """A tensor with its type; extents that are named sizes are names, or expressions as text."""
    shape = [extent if isinstance(extent, int) else str(extent) for extent in type_.shape]
    return helper.make_tensor_value_info(name, ONNX_DTYPES[type_.dtype], shape)


@dataclass
class Writing:
    """The ONNX graph under construction; mutable, lives inside one export.

    sizes   the tensors that hold named sizes, shared by the graphs inside of nodes
    """

    taken: set[str]
    sizes: SizeTensors
    nodes: list[NodeProto] = field(default_factory=list)
    initializers: list[TensorProto] = field(default_factory=list)
    opset: int = 0

    @staticmethod
    def of(graph: Graph, opset: int) -> Writing:
        """An empty one for a whole model."""
        taken = set(graph.types)
        return Writing(taken, SizeTensors(graph.input_types, taken), opset=opset)

    def inside(self) -> Writing:
        """An empty one for a graph inside of a node."""
        return Writing(self.taken, self.sizes, opset=self.opset)

    def fresh(self, stem: str) -> str:
        """A name that nothing has."""
        return fresh(self.taken, stem)


def fresh(taken: set[str], stem: str) -> str:
    """A name that is not taken; it is taken from now on."""
    name = free_name(stem, taken)
    taken.add(name)
    return name


@dataclass(frozen=True, slots=True)
class ExportCall:
    """One node of ours with the types of all tensors."""

    node: Node
    types: Mapping[str, TensorType]
    writing: Writing

    def alike(self, theirs: str, *inputs: str, **attributes: OnnxValue) -> str:
        """Write an ONNX node with the attributes that ours has alike, behind those that are given.

        inputs   ours where there are none; an attribute that is an empty list is left out
        """
        kinds = {name: each.type for name, each in defs.get_schema(theirs).attributes.items()}
        for each in operator(self.node.operator).attributes:
            name = next((name for name in names_of(each.name) if name in kinds), "")
            if name and name not in attributes:
                attributes[name] = self._value(each.name, kinds[name])
        given = {name: value for name, value in attributes.items() if value != ()}
        return self.emit(theirs, inputs or None, **given)

    def _value(self, name: str, kind: defs.OpSchema.AttrType) -> OnnxValue:
        match kind:
            case defs.OpSchema.AttrType.INTS:
                return self.node.ints(name)
            case defs.OpSchema.AttrType.STRING:
                return str(self.node.attribute_map[name])
            case defs.OpSchema.AttrType.FLOAT:
                return self.node.number(name)
            case _:
                return int(self.node.number(name))

    def type_at(self, position: int) -> TensorType:
        """The type of an input."""
        return self.types[self.node.inputs[position]]

    def sizes(self, name: str) -> str:
        """The tensor of an attribute that is a tuple of integers, or of named sizes."""
        values = self.node.sizes(name)
        if all(isinstance(value, int) for value in values):
            return self.constant(np.asarray(values, np.int64))
        return self.writing.sizes.vector(values)

    def size(self, name: str) -> str:
        """The tensor without a dimension of an attribute that is an integer or a named size."""
        return self.scalar(as_size(self.node.attribute_map[name]))

    def scalar(self, value: expr.Index) -> str:
        """The tensor without a dimension of an integer or a named size."""
        return self.constant(value) if isinstance(value, int) else self.writing.sizes.scalar(value)

    def constant(self, value: ArrayLike, dtype: DType = DType.I64) -> str:
        """An initialiser with these numbers."""
        name = self.writing.fresh(f"{self.node.outputs[0]}/constant")
        array = np.asarray(value).astype(dtype.numpy)
        self.writing.initializers.append(numpy_helper.from_array(array, name))
        return name

    def emit(
        self,
        operator: str,
        inputs: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
        /,
        **attributes: OnnxValue,
    ) -> str:
        """Write an ONNX node, by default from our inputs to our outputs; give its first output."""
        sources = self.node.inputs if inputs is None else inputs
        targets = self.node.outputs if outputs is None else outputs
        written = helper.make_node(operator, sources, targets)
        written.attribute.extend(helper.make_attribute(*each) for each in attributes.items())
        self.writing.nodes.append(written)
        return targets[0]

    def step(self, operator: str, *inputs: str, **attributes: OnnxValue) -> str:
        """Write an ONNX node to a temporary value."""
        target = self.writing.fresh(f"{self.node.outputs[0]}/step")
        return self.emit(operator, inputs, (target,), **attributes)

    def needs_opset(self, version: int) -> None:
        """Raise the operator set of the model to at least this version."""
        self.writing.opset = max(self.writing.opset, version)

    def unsupported(self, reason: str) -> UnsupportedError:
        """The error of a rule for a node that ONNX cannot express."""
        return not_in_onnx(self.node, reason)


def not_in_onnx(node: Node, reason: str) -> UnsupportedError:
    """The error for a node that ONNX cannot express."""
    return UnsupportedError(
        stage="export",
        where=node.label,
        reason=reason,
        remedy="compile the graph itself; tensorwright.compile takes a Graph",
        operator=node.operator,
    )


ExportRule: TypeAlias = Callable[[ExportCall], object]
ExportTable: TypeAlias = tuple[tuple[str, ExportRule], ...]
