"""The argument of an export rule: one node of ours, and the ONNX nodes being written for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from tensorwright.base import DType, UnsupportedError
from tensorwright.expr import Index
from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.onnx_export.sizes import SizeTensors
from tensorwright.graph.onnx_import.call import AttributeDefault
from tensorwright.graph.onnx_import.counterparts import Counterpart
from tensorwright.graph.onnx_import.tensors import DTYPES
from tensorwright.ops import AttributeValue, TensorType, as_size

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
        return Writing(
            taken, SizeTensors(graph.input_types, lambda s: fresh(taken, s)), opset=opset
        )

    def inside(self) -> Writing:
        """An empty one for a graph inside of a node."""
        return Writing(self.taken, self.sizes, opset=self.opset)

    def fresh(self, stem: str) -> str:
        """A name that nothing has."""
        return fresh(self.taken, stem)


def fresh(taken: set[str], stem: str) -> str:
    """A name that is not taken; it is taken from now on."""
    name, number = stem, 0
    while name in taken:
        name, number = f"{stem}_{number}", number + 1
    taken.add(name)
    return name


@dataclass(frozen=True, slots=True)
class ExportCall:
    """One node of ours with the types of all tensors."""

    node: Node
    types: Mapping[str, TensorType]
    writing: Writing

    def attribute(self, name: str) -> AttributeValue:
        """An attribute of the node."""
        return self.node.attribute_map[name]

    def ints(self, name: str) -> tuple[int, ...]:
        """An attribute that is a tuple of integers."""
        return self.node.ints(name)

    def integer(self, name: str) -> int:
        """An integer or bool attribute, as an integer."""
        return self.node.integer(name)

    def number(self, name: str) -> float:
        """A number attribute."""
        return self.node.number(name)

    def attributes_of(self, counterpart: Counterpart) -> dict[str, OnnxValue]:
        """The attributes that the node has alike in ONNX, under ONNX's names."""
        pairs = counterpart.named_attributes()
        return {theirs: self._value(ours, default) for ours, theirs, default in pairs}

    def _value(self, name: str, default: AttributeDefault) -> OnnxValue:
        kind = default if isinstance(default, type) else type(default)
        if kind is str:
            return str(self.attribute(name))
        return self.number(name) if kind is float else self.integer(name)

    def type_at(self, position: int) -> TensorType:
        """The type of an input."""
        return self.types[self.node.inputs[position]]

    def rank(self, position: int) -> int:
        """How many dimensions an input has."""
        return len(self.type_at(position).shape)

    def sizes(self, name: str) -> str:
        """The tensor of an attribute that is a tuple of integers, or of named sizes."""
        values = self.node.sizes(name)
        if all(isinstance(value, int) for value in values):
            return self.constant(np.asarray(values, np.int64))
        return self.writing.sizes.vector(values)

    def size(self, name: str) -> str:
        """The tensor without a dimension of an attribute that is an integer or a named size."""
        return self.scalar(as_size(self.attribute(name)))

    def scalar(self, value: Index) -> str:
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
