"""Build a graph node by node."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import SupportsIndex, cast

import numpy as np
from numpy.typing import ArrayLike

from tensorwright import expr
from tensorwright.base import DType, ModelError, OpenSize
from tensorwright.graph.graph import Graph, Layout, Node
from tensorwright.graph.infer import typed_node
from tensorwright.ops import Array, Attributes, AttributeValue, TensorType

LARGE_BYTES = 1 << 20
"""A constant computed from smaller ones is stored up to this size; above it, nodes compute it."""


def frozen_array(value: ArrayLike) -> Array:
    """A read-only, contiguous array in native byte order; copied only where it must be."""
    array = np.asarray(value)
    is_native = array.dtype.isnative and array.flags.c_contiguous
    if not is_native:
        shape, native = array.shape, array.dtype.newbyteorder("=")
        array = np.ascontiguousarray(array, native).reshape(shape)  # which gives scalars an axis
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


class GraphBuilder:
    """Collects inputs, constants and nodes; mutable, used inside one function, then turned into a
    Graph.

    Names that are not given are made from the operator and a number; a name that is taken gets a
    number behind it.

    Example
        >>> b = GraphBuilder("double")
        >>> x = b.input("x", (2, 3))
        >>> y = b.add("add", x, x)
        >>> print(b.finish([y]))
        graph double
          input x: f32(2, 3)
          add_0 = add(x, x) : f32(2, 3)
          output add_0
    """

    def __init__(self, name: str = "graph") -> None:
        self.name = name
        self._inputs: list[str] = []
        self._constants: dict[str, Array] = {}
        self._constant_names: dict[int, tuple[str, ArrayLike]] = {}
        self._nodes: list[Node] = []
        self._types: dict[str, TensorType] = {}
        self._layouts: dict[str, Layout] = {}
        self._counters: dict[str, int] = {}
        self._sizes: dict[str, expr.NamedSize] = {}

    def input(self, name: str, shape: Sequence[int | OpenSize], dtype: DType = DType.F32) -> str:
        """Declare an input; its name is part of the graph's signature.

        shape   numbers, and named sizes for what is known when the network runs

        Raises:  ModelError if the name is taken, or for what is not an extent.
        """
        extents = tuple(_checked_extent(name, extent) for extent in shape)
        for size in expr.named_sizes_of(
            *(each for each in extents if isinstance(each, expr.IndexExpr))
        ):
            if self._sizes.setdefault(size.name, size) is not size:
                raise _fault(
                    f"input {name}",
                    f"another input has a size {size.name} with other bounds",
                    "use one named size for both, or give them two names",
                )
        self._define(name, TensorType(dtype, extents))
        self._inputs.append(name)
        return name

    def constant(self, array: ArrayLike, name: str = "") -> str:
        """Hold an array, not a copy, as a constant; the same array without a name is held once."""
        kept = self._constant_names.get(id(array))
        if kept is not None and not name:
            return kept[0]
        held = frozen_array(array)
        free = self.fresh(name) if name else self._numbered("constant")
        self._define(free, TensorType(DType.from_numpy(held.dtype), held.shape))
        self._constants[free] = held
        # the array is kept, so its id stays its own
        self._constant_names[id(array)] = (free, array)
        return free

    def name_of_constant(self, array: ArrayLike) -> str | None:
        """The name under which exactly this array object is held."""
        kept = self._constant_names.get(id(array))
        return kept[0] if kept is not None else None

    def apply(
        self,
        operator: str,
        inputs: Sequence[str],
        outputs: Sequence[str] = (),
        /,
        **attributes: AttributeValue,
    ) -> tuple[str, ...]:
        """Append a node; returns the names of all its outputs.

        `outputs` wishes names for the first outputs.
        Raises:  UnsupportedError for an unknown operator, ModelError for attributes or inputs that
                 do not fit.
        """
        return self.nest(operator, inputs, (), outputs, **attributes)

    def nest(
        self,
        operator: str,
        inputs: Sequence[str],
        graphs: tuple[Graph, ...],
        outputs: Sequence[str] = (),
        /,
        **attributes: AttributeValue,
    ) -> tuple[str, ...]:
        """As `apply`, for a node that holds graphs."""
        first = self.fresh(outputs[0]) if outputs else self._numbered(operator)
        draft, types = typed_node(operator, tuple(inputs), first, attributes, self._types, graphs)
        names = [first]
        for position in range(1, len(types)):
            wish = outputs[position] if position < len(outputs) else f"{first}.{position}"
            names.append(self.fresh(wish))
        return self.append(replace(draft, outputs=tuple(names)), types)

    def append(self, node: Node, types: Sequence[TensorType]) -> tuple[str, ...]:
        """Append a node of another graph, where its inputs have the same types; returns its
        outputs.

        Raises:  ModelError if the name of an output is taken.
        """
        for name, type_ in zip(node.outputs, types, strict=True):
            self._define(name, type_)
        self._nodes.append(node)
        return node.outputs

    def add(
        self, operator: str, *inputs: str, output: str = "", **attributes: AttributeValue
    ) -> str:
        """Append a node and return its first output."""
        return self.apply(operator, inputs, (output,) if output else (), **attributes)[0]

    def size_named(self, name: str) -> expr.NamedSize | None:
        """The size of that name which inputs have; None if there is none."""
        return self._sizes.get(name)

    def narrow(self, sizes: Mapping[expr.NamedSize, expr.Index]) -> None:
        """Replace sizes by narrower ones in all types; attributes of nodes keep theirs."""
        shapes: dict[tuple[int | OpenSize, ...], tuple[int | OpenSize, ...]] = {}
        for name, type_ in self._types.items():
            if type_.shape not in shapes:
                shapes[type_.shape] = tuple(
                    expr.substitute(extent, sizes) if isinstance(extent, expr.IndexExpr) else extent
                    for extent in type_.shape
                )
            self._types[name] = replace(type_, shape=shapes[type_.shape])
        self._sizes |= {each.name: each for each in expr.named_sizes_of(*sizes.values())}

    def set_layout(self, name: str, layout: Layout) -> None:
        """Set the layout of a tensor."""
        self._layouts[name] = layout

    def draft(self) -> GraphBuilder:
        """A copy of this builder, which leaves this one as it is."""
        draft = GraphBuilder(self.name)
        for name, value in vars(self).items():
            setattr(draft, name, value.copy() if isinstance(value, list | dict) else value)
        return draft

    def take(self, draft: GraphBuilder) -> None:
        """Replace the state by that of a draft of this builder."""
        vars(self).update(vars(draft))

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs declared so far."""
        return tuple(self._inputs)

    def type_of(self, name: str) -> TensorType:
        """The type of a tensor that is defined."""
        return self._types[name]

    def shape_of(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor that is defined."""
        return self._types[name].extents

    def constant_value(self, name: str) -> Array | None:
        """The array behind a name, None if it is not a constant."""
        return self._constants.get(name)

    def producer(self, name: str) -> Node | None:
        """The node that makes a tensor; inputs and constants have none."""
        return next((node for node in self._nodes if name in node.outputs), None)

    def alike(self, operator: str, inputs: Sequence[str], attributes: Attributes) -> Node | None:
        """The node of an operator that reads these tensors and has these attributes, if any."""
        for node in self._nodes:
            if (node.operator, node.inputs) == (operator, tuple(inputs)):
                own = node.attribute_map
                if all(own.get(name) == value for name, value in attributes.items()):
                    return node
        return None

    def constant_graph(self, name: str) -> Graph | None:
        """The part of the graph that computes a tensor, None if that depends on an input."""
        needed, nodes = {name}, []
        for node in reversed(self._nodes):
            if not needed.isdisjoint(node.outputs):
                needed.update(node.inputs)
                nodes.append(node)
        if not needed.isdisjoint(self._inputs):
            return None
        part = self.draft()
        part._nodes = nodes[::-1]
        part._inputs = []
        defined = needed.union(*(node.outputs for node in nodes))
        part._types = {each: self._types[each] for each in defined}
        part._constants = {each: a for each, a in self._constants.items() if each in defined}
        return part.finish((name,))

    def __contains__(self, name: object) -> bool:
        return name in self._types

    def fresh(self, wish: str) -> str:
        """A name that is not taken: the wish itself, or the wish with a number behind it."""
        return self._numbered(wish) if wish in self._types else wish

    def _numbered(self, stem: str) -> str:
        number = self._counters.get(stem, 0)
        while f"{stem}_{number}" in self._types:
            number += 1
        self._counters[stem] = number + 1
        return f"{stem}_{number}"

    def finish(self, outputs: Sequence[str]) -> Graph:
        """The graph of what was built so far.

        Raises:  ModelError if an output is not defined.
        """
        missing = [name for name in outputs if name not in self._types]
        if missing:
            raise _fault(
                f"output {missing[0]}",
                "nothing defines it",
                "give names that input, constant, add or apply returned",
            )
        return Graph(
            self.name,
            tuple(self._inputs),
            MappingProxyType(dict(self._constants)),
            tuple(self._nodes),
            tuple(outputs),
            MappingProxyType(dict(self._types)),
            MappingProxyType({k: v for k, v in self._layouts.items() if not v.is_plain}),
        )

    def _define(self, name: str, type_: TensorType) -> None:
        if not name or name in self._types:
            reason = "it is defined a second time" if name else "a tensor has an empty name"
            remedy = f"give it a name of its own; fresh({name or 'x'!r}) makes one"
            raise _fault(f"tensor {name}", reason, remedy)
        if any(isinstance(extent, int) and extent < 0 for extent in type_.shape):
            raise _fault(f"tensor {name}", f"negative extent: {type_}", "an extent is 0 or more")
        self._types[name] = type_


def _checked_extent(name: str, extent: object) -> int | OpenSize:
    """An extent of an input: a number, or a size that is never negative."""
    if isinstance(extent, expr.IndexExpr):
        if expr.is_nonnegative(extent, {}):
            return extent
        raise _fault(
            f"input {name}",
            f"its extent {extent} may be negative",
            'give the size a least number: named_size("n", least=...)',
        )
    try:
        return operator.index(cast(SupportsIndex, extent))
    except TypeError:
        raise _fault(
            f"input {name}",
            f"{extent!r} is not an extent",
            'give an integer, or a size by name: named_size("n")',
        ) from None


def _fault(where: str, reason: str, remedy: str) -> ModelError:
    return ModelError(stage="graph", where=where, reason=reason, remedy=remedy)
