"""Write terms of a network as a graph again.

    write_network(network, choice)       choice: the node that is taken for each class

Operators of rules mean chains of operators of networks (`RewriteOperator.meaning`); what would be
an operator more than necessary is written as one:

    ewadd(?x, broadcast[...](reshape[1, 8, 1, 1](?b)))      add(x, reshape(b)): NumPy broadcasts
    concat[1](concat[1](?a, ?b), ?c)                         concat(a, b, c)
    split0[1, 4](split1[1, 4](?x))                           slice(x) from 4 to 8
    matmul(?x, transpose[1, 0](?w))                          gemm(x, w), the second turned
    reshape[2, 5, 9](matmul(reshape[10, 8](?x), ?w))         matmul(x, w) of (2, 5, 8) and (8, 9)
    reshape[1, 8, 9](conv2d[...](?x, ?w))                     conv(x, w) over one dimension
    matmul(call[one_hot-0, 0](?i), ?w)                        gather(w, i)

Names of inputs and outputs stay; what only constants lead to is folded by `simplify`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from tensorwright.base import DType, InternalError
from tensorwright.graph import Graph, GraphBuilder
from tensorwright.ops import Array
from tensorwright.rewriting.egraph import INPUT, Id
from tensorwright.rewriting.networks.network_analysis import TensorData
from tensorwright.rewriting.networks.opaque import CALL
from tensorwright.rewriting.networks.read import Network
from tensorwright.rewriting.operators import PAIRS, PARTS, REDUCTIONS, Step, follow, operator_named
from tensorwright.rewriting.terms import Param
from tensorwright.rewriting.traversal import NeedsItselfError, arguments_first

Choice = Mapping[Id, Id]
"""The node that is taken for each class, by its leader."""

_WINDOWS = frozenset({"conv2d", "max_pool", "avg_pool"})
_FEW = 1 << 14  # elements


@dataclass(frozen=True, slots=True, eq=False)
class Outline:
    """A network without its numbers.

    classes   the leader of the class that each tensor is, where it has one
    """

    graph: Graph
    classes: Mapping[str, Id]


def write_network(network: Network, choice: Choice) -> Graph:
    """The graph of the chosen terms, with the inputs and outputs of the network.

    Raises:  InternalError where a class has no choice, or needs itself.
    """
    return _Writer(network, choice, has_values=True).graph()


def write_outline(network: Network, choice: Choice) -> Outline:
    """As `write_network`, with numbers without meaning for all that is constant: enough to say what
    the graph costs, and written without computing anything.
    """
    writer = _Writer(network, choice, has_values=False)
    graph = writer.graph()
    return Outline(graph, MappingProxyType(writer.classes))


class _Writer:
    """Mutable, for one graph: the tensors that were written so far, by class."""

    def __init__(self, network: Network, choice: Choice, *, has_values: bool) -> None:
        self._has_values = has_values
        self._network = network
        self._terms = network.terms
        self._choice = choice
        self._source = network.graph
        self._builder = GraphBuilder(network.graph.name)
        self._tensors: dict[Id, str] = {}
        self._calls: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}
        self._wishes: dict[Id, str] = {}
        self._count = 0

    @property
    def classes(self) -> dict[str, Id]:
        """The class of each tensor."""
        return {name: leader for leader, name in self._tensors.items()}

    def graph(self) -> Graph:
        """Write all of it."""
        graph = self._source
        for name in graph.inputs:
            type_ = graph.types[name]
            self._builder.input(name, type_.extents, type_.dtype)
        for name in (*graph.outputs, *graph.producers()):
            self._wishes.setdefault(self._leader(self._network.nodes[name]), name)
        for leader in self._in_order():
            self._tensors[leader] = self._write(leader)
        return self._builder.finish([self._output(name) for name in graph.outputs])

    def _output(self, name: str) -> str:
        """The tensor of an output, under its name."""
        if name in self._source.inputs:
            return name
        if name in self._source.constants:
            return self._constant(name)
        written = self._tensors[self._leader(self._network.nodes[name])]
        return written if written == name else self._builder.add("identity", written, output=name)

    def _in_order(self) -> Iterator[Id]:
        """The classes that the outputs need, arguments first."""

        def below(leader: Id) -> tuple[Id, ...]:
            return tuple(map(self._leader, self._read_by(self._node(leader))))

        try:
            yield from arguments_first(map(self._leader, self._network.outputs), below)
        except NeedsItselfError as loop:
            raise self._fault(loop.name, "it needs itself") from None

    def _read_by(self, node: Id) -> tuple[Id, ...]:
        """The terms whose tensors a node reads when it is written."""
        if self._is_outlined(node):
            return ()
        operator, params = self._parts(node)
        if operator in PAIRS or operator == "select":
            return self._operands(node)
        if operator == "concat":
            return tuple(self._joined(node, params[0]))
        if operator in PARTS:
            return (self._part(node)[0],)
        if operator in REDUCTIONS:
            return (self._folded(node)[0],)
        if operator == "reshape":
            flat = self._flat(node)
            if flat:
                return (flat[1],)
            line = self._line(node)
            if line is not None:
                return self._terms.children(line)
            rows = self._rows(node)
            return (self._looked_up(*rows) or rows) if rows else self._terms.children(node)
        if operator == "matmul":
            operands = self._terms.children(node)
            return self._looked_up(*operands) or tuple(self._unturned(each)[0] for each in operands)
        return self._terms.children(node)

    def _write(self, name: Id) -> str:
        """Append what computes a class; the name of its tensor."""
        node = self._node(name)
        operator, params = self._parts(node)
        args = tuple(self._tensors[self._leader(each)] for each in self._read_by(node))
        wish = self._wish(name)
        if self._is_outlined(node):
            return self._builder.constant(_numbers(self._terms.data(node), node))
        if operator == INPUT:
            known = str(params[0])
            return self._constant(known) if known in self._source.constants else known
        if operator == CALL:
            return self._call(node, args)
        if operator == "concat":
            return self._builder.apply("concat", args, wish, axis=_axis(params))[0]
        if operator in PARTS:
            _, axis, start, stop = self._part(node)
            cut = {"axes": (axis,), "starts": (start,), "ends": (stop,)}
            return self._builder.apply("slice", args, wish, **cut)[0]
        if operator == "matmul":
            if self._looked_up(*self._terms.children(node)):
                return self._gather(node, args, wish)
            left, right = (self._unturned(child)[1] for child in self._terms.children(node))
            if left or right:
                return self._builder.apply("gemm", args, wish, trans_a=left, trans_b=right)[0]
        if operator in REDUCTIONS:
            axes = self._folded(node)[1]
            return self._builder.apply(operator, args, wish, axes=axes)[0]
        flat = self._flat(node) if operator == "reshape" else None
        if flat is not None:
            folded, _, axes = flat
            return self._builder.apply(folded, args, wish, axes=axes, keepdims=False)[0]
        if operator == "reshape" and self._rows(node):
            if self._looked_up(*self._rows(node)):
                return self._gather(node, args, wish)
            return self._builder.apply("matmul", args, wish)[0]
        line = self._line(node) if operator == "reshape" else None
        if line is not None:
            args = tuple(map(self._without_rows, args))
        steps = self._steps(node) if line is None else tuple(map(_along_columns, self._steps(line)))

        def apply(step: Step, args: tuple[str, ...]) -> str:
            named = wish if step is steps[-1] else self._new_name()
            attributes = {  # rules are evaluated in f64, networks are in f32
                key: DType.F32 if value is DType.F64 else value
                for key, value in step.attributes.items()
            }
            return self._builder.apply(step.operator, args, named, **attributes)[0]

        return follow(steps, args, apply)[0]

    def _steps(self, node: Id) -> tuple[Step, ...]:
        operator, params = self._parts(node)
        shapes = tuple(self._terms.data(child).shape for child in self._terms.children(node))
        return operator_named(operator).meaning(params, shapes)

    def _line(self, node: Id) -> Id | None:
        """What slides along columns of images of one row, where a reshape drops that row."""
        (below,) = self._terms.children(node)
        inner = self._node(self._leader(below))
        operator, params = self._parts(inner)
        if operator not in _WINDOWS:
            return None
        images = (inner, *self._terms.children(inner))
        if operator != "conv2d" and params[0] != 1:
            return None
        shape = self._terms.data(inner).shape
        is_row = all(self._terms.data(each).shape[2] == 1 for each in images)
        drops = self._terms.data(node).shape == (*shape[:2], *shape[3:])
        pads = self._steps(inner)[0].attributes["pads"]
        assert isinstance(pads, tuple), "of rows and columns"
        return inner if is_row and drops and pads[0] == pads[2] == 0 else None

    def _without_rows(self, name: str) -> str:
        """Images of one row as rows of elements."""
        shape = self._builder.type_of(name).shape
        kept = (*shape[:2], *shape[3:])
        return self._builder.apply("reshape", (name,), self._new_name(), shape=kept)[0]

    def _is_outlined(self, node: Id) -> bool:
        return not self._has_values and self._terms.data(node).is_constant

    def _wish(self, name: Id) -> tuple[str]:
        """The name of a class in the network that was read, else one that is new."""
        wish = self._wishes.get(name, "")
        if not wish or wish in self._builder:
            return self._new_name()
        return (wish,)

    def _new_name(self) -> tuple[str]:
        """A name that the network that was read does not have."""
        while True:
            self._count += 1
            name = f"rewritten_{self._count}"
            if name not in self._source.types:
                return (name,)

    def _constant(self, name: str) -> str:
        if name not in self._builder:
            self._builder.constant(self._source.constants[name], name)
        return name

    def _call(self, node: Id, args: tuple[str, ...]) -> str:
        """The outputs of one call are written together."""
        _, (word, output) = self._parts(node)
        assert isinstance(output, int), "an output is a number"
        key = (str(word), args)
        if key not in self._calls:
            operator, attributes = self._network.opaque.kind(str(word))
            children = self._terms.children(node)
            types = tuple(self._builder.type_of(arg) for arg in args)
            found = self._network.opaque.infer(
                str(word), tuple((t.dtype, t.extents) for t in types)
            )
            outputs: list[str] = []
            for place in range(len(found or ())):
                twin = self._terms.put(self._terms.head(CALL, (word, place)), children)
                assert twin is not None, "an operator has all of its outputs"
                outputs += self._wish(self._leader(twin))
            if self._network.opaque.is_row_selector(str(word)):
                values = np.array([0, 1], np.float32)
                args = (*args, self._builder.constant(values, *self._new_name()))
            self._calls[key] = self._builder.apply(operator, args, outputs, **dict(attributes))
        return self._calls[key][output]

    def _looked_up(self, rows: Id, table: Id) -> tuple[Id, ...]:
        """(the matrix, the positions) of which a product reads rows; () for another product."""
        node = self._node(self._leader(rows))
        while self._parts(node)[0] == "reshape" and self._terms.data(node).selects_rows:
            node = self._node(self._leader(self._terms.children(node)[0]))
        operator, params = self._parts(node)
        is_row_selector = operator == CALL and self._network.opaque.is_row_selector(str(params[0]))
        return (table, *self._terms.children(node)) if is_row_selector else ()

    def _gather(self, node: Id, args: tuple[str, ...], wish: tuple[str]) -> str:
        """Rows of a matrix at positions, in the shape of a node."""
        table, positions = map(self._builder.type_of, args)
        shape = self._terms.data(node).shape
        if shape == (*positions.shape, table.shape[-1]):
            return self._builder.apply("gather", args, wish)[0]
        rows = self._builder.apply("gather", args, self._new_name())
        return self._builder.apply("reshape", rows, wish, shape=shape)[0]

    def _operands(self, node: Id) -> tuple[Id, ...]:
        """The operands at one place without what broadcasting does anyway."""
        shape = self._terms.data(node).shape
        operands = list(self._terms.children(node))
        for place, operand in enumerate(operands):
            others = (*operands[:place], *operands[place + 1 :])
            if any(self._terms.data(other).shape == shape for other in others):
                operands[place] = self._unstretched(operand)
        return tuple(operands)

    def _unstretched(self, operand: Id) -> Id:
        """What a term is broadcast from; itself where it is not."""
        node = self._node(self._leader(operand))
        if self._parts(node)[0] != "broadcast":
            return operand
        (inner,) = self._terms.children(node)
        reshaped = self._node(self._leader(inner))
        if self._parts(reshaped)[0] != "reshape":
            return inner
        (source,) = self._terms.children(reshaped)
        shape, own = self._terms.data(inner).shape, self._terms.data(source).shape
        has_leading_ones = shape == (1,) * (len(shape) - len(own)) + own
        return source if has_leading_ones else inner

    def _unturned(self, operand: Id) -> tuple[Id, bool]:
        """What a matrix is the transposed of, and whether it is."""
        node = self._node(self._leader(operand))
        if self._parts(node) != ("transpose", (1, 0)):
            return operand, False
        return self._terms.children(node)[0], True

    def _rows(self, node: Id) -> tuple[Id, ...]:
        """The operands of a product of many matrices with one; () for another."""
        (below,) = self._terms.children(node)
        product = self._node(self._leader(below))
        if self._parts(product)[0] != "matmul":
            return ()
        rows, w = self._terms.children(product)
        joined = self._node(self._leader(rows))
        if self._parts(joined)[0] != "reshape" or self._unturned(w)[1]:
            return ()
        (source,) = self._terms.children(joined)
        shape, wide = self._terms.data(source).shape, self._terms.data(w).shape
        is_same = self._terms.data(node).shape == (*shape[:-1], wide[-1]) and len(wide) == 2
        return (source, w) if is_same and shape[-1] == wide[0] else ()

    def _folded(self, node: Id) -> tuple[Id, tuple[int, ...]]:
        """(the tensor, the axes) of which nested reductions of one kind are one."""
        operator, params = self._parts(node)
        axes = [_axis(params)]
        (source,) = self._terms.children(node)
        below = self._node(self._leader(source))
        while self._parts(below)[0] == operator:
            axes.append(_axis(self._parts(below)[1]))
            (source,) = self._terms.children(below)
            below = self._node(self._leader(source))
        return source, tuple(sorted(set(axes)))

    def _flat(self, node: Id) -> tuple[str, Id, tuple[int, ...]] | None:
        """(the reduction, the tensor, the axes) where a reshape drops the dimensions that were
        reduced; None for another reshape.
        """
        (below,) = self._terms.children(node)
        inner = self._node(self._leader(below))
        operator = self._parts(inner)[0]
        if operator not in REDUCTIONS:
            return None
        source, axes = self._folded(inner)
        shape = self._terms.data(below).shape
        kept = tuple(extent for axis, extent in enumerate(shape) if axis not in axes)
        return (operator, source, axes) if self._terms.data(node).shape == kept else None

    def _joined(self, node: Id, axis: Param) -> Iterator[Id]:
        """The tensors that nested concatenations along one dimension put together."""
        for child in self._terms.children(node):
            below = self._node(self._leader(child))
            if self._parts(below) == ("concat", (axis,)):
                yield from self._joined(below, axis)
            else:
                yield child

    def _part(self, node: Id) -> tuple[Id, int, int, int]:
        """(the tensor, the axis, from, to) of which nested parts along one dimension are one."""
        axis, start, stop = self._cut(node)
        (source,) = self._terms.children(node)
        below = self._node(self._leader(source))
        while self._parts(below)[0] in PARTS and self._cut(below)[0] == axis:
            before = self._cut(below)[1]
            start, stop = start + before, stop + before
            (source,) = self._terms.children(below)
            below = self._node(self._leader(source))
        return source, axis, start, stop

    def _cut(self, node: Id) -> tuple[int, int, int]:
        """(the axis, from, to) of a part."""
        operator, params = self._parts(node)
        (child,) = self._terms.children(node)
        axis, *places = (param for param in params if isinstance(param, int))
        if operator == "slice":
            return axis, places[0], places[1]
        extent = self._terms.data(child).shape[axis]
        return (axis, 0, places[0]) if operator == "split0" else (axis, places[0], extent)

    def _leader(self, name: Id) -> Id:
        return self._terms.find(name)

    def _node(self, leader: Id) -> Id:
        node = self._choice.get(leader)
        if node is None:
            raise self._fault(leader, "nothing is chosen for it")
        return node

    def _parts(self, node: Id) -> tuple[str, tuple[Param, ...]]:
        return self._terms.parts(self._terms.head_of(node))

    def _fault(self, name: object, reason: str) -> InternalError:
        return InternalError(stage="rewrite", where=f"class {name}", reason=reason)


def _along_columns(step: Step) -> Step:
    """A step along rows and columns, of which columns alone are left."""
    changed = {
        key: value[1::2] for key, value in step.attributes.items() if isinstance(value, tuple)
    }
    return replace(step, attributes={**step.attributes, **changed})


def _axis(params: tuple[Param, ...]) -> int:
    (axis,) = params
    assert isinstance(axis, int), "an axis is a number"
    return axis


def _numbers(data: TensorData, mark: int) -> Array:
    """A constant in the place of another, unlike all others: equal ones would be taken for one."""
    if data.elements > _FEW or not data.dtype.is_float:
        found = np.zeros(data.shape, data.dtype.numpy)  # pages that nobody writes to take none
    else:
        found = np.full(data.shape, 0.5, data.dtype.numpy)
    if data.dtype.is_float and data.elements:
        found.reshape(-1)[0] = 2.0 + mark
    return found
