"""Read a network as terms: a class of an e-graph for each of its tensors.

    network = read_network(graph)
    network.terms.term(network.outputs["y"])          relu(conv2d[1, 1, same, none](?x, ?w))

Every graph can be read: an operator is called as it is if it has no counterpart in the language of
rules, or tensors that rules do not cover.  A tensor that several operators read is one node: shared
parts stay shared.

The operators of networks as which a term is written, and the terms that they read.

    ewadd(?x, broadcast[...](reshape[1, 8, 1, 1](?b)))      add(x, reshape(b)): NumPy broadcasts
    concat[1](concat[1](?a, ?b), ?c)                         concat(a, b, c)
    split0[1, 4](split1[1, 4](?x))                           slice(x) from 4 to 8
    matmul(?x, transpose[1, 0](?w))                          gemm(x, w), the second transposed
    reshape[2, 5, 9](matmul(reshape[10, 8](?x), ?w))         matmul(x, w) of (2, 5, 8) and (8, 9)
    reshape[1, 8, 9](conv2d[...](?x, ?w))                     conv(x, w) over one dimension
    matmul(call[one_hot-0, 0](?i), ?w)                        gather(w, i)

A term without a form of its own is written as what its operator means (`RewriteOperator.meaning`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tensorwright.base import InternalError, UndecidedError
from tensorwright.graph import Graph
from tensorwright.ops import sizes_of
from tensorwright.rewriting.dims import Shape, Size
from tensorwright.rewriting.egraph import INPUT, EGraph, Id
from tensorwright.rewriting.networks import network_analysis
from tensorwright.rewriting.networks.counterparts import (
    COUNTERPARTS,
    MIXED,
    Application,
    Counterpart,
    Terms,
)
from tensorwright.rewriting.operators import PAIRS, PARTS, REDUCTIONS, Step, operator_named, size
from tensorwright.rewriting.terms import Param


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A network as terms.

    graph     what was read
    terms     its e-graph, where rewrites make more terms equal
    opaque    the operators that it calls
    nodes     of each tensor
    """

    graph: Graph
    terms: EGraph[network_analysis.TensorData]
    opaque: network_analysis.OpaqueOperators
    nodes: Mapping[str, Id]

    @property
    def outputs(self) -> tuple[Id, ...]:
        """The node of each output, in order."""
        return tuple(self.nodes[name] for name in self.graph.outputs)


def read_network(graph: Graph, *, with_proofs: bool = False) -> Network:
    """Read a graph, which should be simplified, so that equal nodes are one.

    with_proofs   whether the e-graph can tell why terms are equal
    """
    opaque = network_analysis.OpaqueOperators()
    inputs = {
        name: network_analysis.TensorData(
            sizes_of(graph.types[name]), graph.types[name].dtype, name in graph.constants
        )
        for name in (*graph.inputs, *graph.constants)
    }
    terms = EGraph(network_analysis.NetworkAnalysis(inputs, opaque), with_proofs=with_proofs)
    builder = network_analysis.TermBuilder(terms, opaque)
    nodes = {name: builder.input(name) for name in inputs}
    for node in graph.nodes:
        args = tuple(nodes[name] for name in node.inputs)
        application = Application(node, args, tuple(graph.types[name] for name in node.outputs))
        nodes.update(zip(node.outputs, _terms_of(builder, application), strict=True))
    return Network(graph, terms, opaque, nodes)


def _in_rules(
    counterpart: Counterpart, builder: network_analysis.TermBuilder, application: Application
) -> Terms:
    """The counterpart of an operator; None where sizes leave open whether it fits."""
    try:
        return counterpart(builder, application)
    except (UndecidedError, network_analysis.NoTermError):
        if any(builder.terms.data(arg).type.is_open for arg in application.args):
            return None
        raise


def _terms_of(builder: network_analysis.TermBuilder, application: Application) -> tuple[Id, ...]:
    operator = application.node.operator
    counterpart = COUNTERPARTS.get(operator)
    data = [builder.terms.data(arg) for arg in application.args]
    if operator in MIXED:
        data = [each for each in data if each.dtype.is_float]
    data += [
        network_analysis.TensorData(sizes_of(type_), type_.dtype) for type_ in application.types
    ]
    if counterpart is not None and all(map(network_analysis.has_rules, data)):
        terms = _in_rules(counterpart, builder, application)
        if terms is not None:
            return terms
    word = builder.opaque.word(operator, application.node.attributes)
    return tuple(
        builder.call(word, number, application.args) for number in range(len(application.types))
    )


Choice = Mapping[Id, Id]
"""The node that is taken for each class, by its leader."""

_WINDOWS = frozenset({"conv2d", "max_pool", "avg_pool"})


@dataclass(frozen=True, slots=True)
class Form:
    """How a term is written: a chain of operators, of which the first gets the terms `reads`."""

    reads: tuple[Id, ...]
    steps: tuple[Step, ...]


class Forms:
    """The forms of a network's terms, of which a choice takes one for each class."""

    def __init__(self, network: Network, choice: Choice) -> None:
        self._terms = network.terms
        self._opaque = network.opaque
        self._choice = choice

    def chosen(self, name: Id) -> Id:
        """The node that is taken for the class of a term.

        Raises:  InternalError where nothing is.
        """
        leader = self._terms.find(name)
        node = self._choice.get(leader)
        if node is None:
            reason = "nothing is chosen for it"
            raise InternalError(stage="rewrite", where=f"class {leader}", reason=reason)
        return node

    def parts(self, node: Id) -> tuple[str, tuple[Param, ...]]:
        """The operator of a node, and its parameters."""
        return self._terms.parts(self._terms.head_of(node))

    def of(self, node: Id) -> Form:
        """How a node is written; inputs and calls have no steps."""
        operator, _ = self.parts(node)
        form: Form | None = None
        if operator in (INPUT, network_analysis.CALL):
            form = Form(self._terms.children(node), ())
        elif operator in PAIRS or operator == "select":
            form = Form(self._operands(node), self._meaning(node))
        elif operator == "concat":
            form = Form(tuple(self._joined(node)), (Step("concat", {"axis": self._axis(node)}),))
        elif operator in PARTS:
            form = self._part(node)
        elif operator in REDUCTIONS:
            source, axes = self._folded(node)
            form = Form((source,), (Step(operator, {"axes": axes}),))
        elif operator == "reshape":
            form = self._flat(node) or self._line(node) or self._rows(node)
        elif operator == "matmul":
            form = self._looked_up(node, *self._terms.children(node)) or self._gemm(node)
        return form or Form(self._terms.children(node), self._meaning(node))

    def _operands(self, node: Id) -> tuple[Id, ...]:
        """The operands without broadcasts that the operator makes itself."""
        operands = list(self._terms.children(node))
        for at, operand in enumerate(operands):
            others = (*operands[:at], *operands[at + 1 :])
            if any(self._shape(other) == self._shape(node) for other in others):
                operands[at] = self._unstretched(operand)
        return tuple(operands)

    def _unstretched(self, operand: Id) -> Id:
        """The term that is broadcast; itself where it is not."""
        node = self.chosen(operand)
        if self.parts(node)[0] != "broadcast":
            return operand
        (inner,) = self._terms.children(node)
        reshaped = self.chosen(inner)
        if self.parts(reshaped)[0] != "reshape":
            return inner
        (source,) = self._terms.children(reshaped)
        shape, own = self._shape(inner), self._shape(source)
        has_leading_ones = shape == (1,) * (len(shape) - len(own)) + own
        return source if has_leading_ones else inner

    def _joined(self, node: Id) -> Iterator[Id]:
        """The tensors that nested concatenations along one dimension put together."""
        for child in self._terms.children(node):
            below = self.chosen(child)
            if self.parts(below) == self.parts(node):
                yield from self._joined(below)
            else:
                yield child

    def _part(self, node: Id) -> Form:
        """Nested parts along one dimension as one."""
        axis, start, stop = self._cut(node)
        (source,) = self._terms.children(node)
        below = self.chosen(source)
        while self.parts(below)[0] in PARTS and self._axis(below) == axis:
            before = self._cut(below)[1]
            start, stop = start + before, stop + before
            (source,) = self._terms.children(below)
            below = self.chosen(source)
        cut = {"axes": (axis,), "starts": (start,), "ends": (stop,)}
        return Form((source,), (Step("slice", cut),))

    def _cut(self, node: Id) -> tuple[int, Size, Size]:
        """(the axis, from, to) of a part."""
        operator, params = self.parts(node)
        (child,) = self._terms.children(node)
        axis, bounds = self._axis(node), tuple(map(size, params[1:]))
        if operator == "slice":
            return axis, bounds[0], bounds[1]
        extent = self._shape(child)[axis]
        return (axis, 0, bounds[0]) if operator == "split0" else (axis, bounds[0], extent)

    def _folded(self, node: Id) -> tuple[Id, tuple[int, ...]]:
        """(the tensor, the axes) of which nested reductions of one kind are one."""
        operator, axes = self.parts(node)[0], set[int]()
        while self.parts(node)[0] == operator:
            axes.add(self._axis(node))
            (source,) = self._terms.children(node)
            node = self.chosen(source)
        return source, tuple(sorted(axes))

    def _flat(self, node: Id) -> Form | None:
        """A reshape that drops the dimensions that were reduced."""
        inner = self._below(node)
        operator = self.parts(inner)[0]
        if operator not in REDUCTIONS:
            return None
        source, axes = self._folded(inner)
        kept = tuple(extent for axis, extent in enumerate(self._shape(inner)) if axis not in axes)
        if self._shape(node) != kept:
            return None
        return Form((source,), (Step(operator, {"axes": axes, "keepdims": False}),))

    def _line(self, node: Id) -> Form | None:
        """A window along the columns of images of one row, where a reshape drops that row."""
        inner = self._below(node)
        operator, params = self.parts(inner)
        if operator not in _WINDOWS or (operator != "conv2d" and params[0] != 1):
            return None
        operands = self._terms.children(inner)
        is_row = all(self._shape(each)[2] == 1 for each in (inner, *operands))
        steps = self._meaning(inner)
        pads = steps[0].attributes["pads"]
        assert isinstance(pads, tuple), "of rows and columns"
        drops = self._shape(node) == _without_row(self._shape(inner))
        if not is_row or not drops or not pads[0] == pads[2] == 0:
            return None
        shapes = map(_without_row, map(self._shape, operands))
        lines = (Step("reshape", {"shape": each}, at) for at, each in enumerate(shapes))
        return Form(operands, (*lines, *map(_along_columns, steps)))

    def _rows(self, node: Id) -> Form | None:
        """A reshaped product of all rows of many matrices with one."""
        product = self._below(node)
        if self.parts(product)[0] != "matmul":
            return None
        rows, w = self._terms.children(product)
        joined = self.chosen(rows)
        if self.parts(joined)[0] != "reshape" or self._is_transposed(w):
            return None
        (source,) = self._terms.children(joined)
        shape, wide = self._shape(source), self._shape(w)
        is_same = self._shape(node) == (*shape[:-1], wide[-1]) and len(wide) == 2
        if not is_same or shape[-1] != wide[0]:
            return None
        return self._looked_up(node, source, w) or Form((source, w), (Step("matmul", {}),))

    def _looked_up(self, node: Id, rows: Id, table: Id) -> Form | None:
        """A product that reads rows of a matrix, in the shape of a node."""
        below = self.chosen(rows)
        while self.parts(below)[0] == "reshape" and self._terms.data(below).selects_rows:
            below = self._below(below)
        operator, params = self.parts(below)
        if operator != network_analysis.CALL or not self._opaque.is_row_selector(str(params[0])):
            return None
        (positions,) = self._terms.children(below)
        steps = [Step(network_analysis.ROW_READER, {})]
        if self._shape(node) != (*self._shape(positions), self._shape(table)[-1]):
            steps.append(Step("reshape", {"shape": self._shape(node)}))
        return Form((table, positions), tuple(steps))

    def _gemm(self, node: Id) -> Form | None:
        """A product of matrices of which one is transposed at least."""
        operands = self._terms.children(node)
        left, right = transposed = tuple(map(self._is_transposed, operands))
        reads = tuple(
            self._below(self.chosen(each)) if is_transposed else each
            for each, is_transposed in zip(operands, transposed, strict=True)
        )
        gemm = Step("gemm", {"trans_a": left, "trans_b": right})
        return Form(reads, (gemm,)) if left or right else None

    def _is_transposed(self, operand: Id) -> bool:
        return self.parts(self.chosen(operand)) == ("transpose", (1, 0))

    def _below(self, node: Id) -> Id:
        """The chosen node for the one argument of a node."""
        (child,) = self._terms.children(node)
        return self.chosen(child)

    def _meaning(self, node: Id) -> tuple[Step, ...]:
        operator, params = self.parts(node)
        shapes = tuple(map(self._shape, self._terms.children(node)))
        return operator_named(operator).meaning(params, shapes)

    def _shape(self, name: Id) -> Shape:
        return self._terms.data(name).shape

    def _axis(self, node: Id) -> int:
        axis = self.parts(node)[1][0]
        assert isinstance(axis, int), "an axis is a number"
        return axis


def _without_row(shape: Shape) -> Shape:
    """The shape of rows of elements that are images of one row."""
    return (*shape[:2], *shape[3:])


def _along_columns(step: Step) -> Step:
    """A step along rows and columns, of which columns alone are left."""
    changed = {
        key: value[1::2] for key, value in step.attributes.items() if isinstance(value, tuple)
    }
    return replace(step, attributes={**step.attributes, **changed})
