"""Turn a record of an exported graph into a Graph, node by node.

Start with `record.py`, then `call.py`; each file of `converters/` is one family of operators. A
value of the record becomes a tensor of the graph, a number or an expression of sizes. Operators
that write into their operand become operators that return a new tensor: see `in_place.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TypeAlias

import numpy as np
from onnx import ValueInfoProto, helper

from tensorwright import expr
from tensorwright.base import DType, UndecidedError, UnsupportedError
from tensorwright.graph.graph import Graph, free_name, rename_tensors
from tensorwright.graph.imports import importer
from tensorwright.graph.imports.aten import in_place
from tensorwright.graph.imports.aten.record import (
    EXPORT_AGAIN,
    Argument,
    Body,
    ElementType,
    ExportedGraph,
    Input,
    Node,
    Ref,
    dtype_of,
)
from tensorwright.graph.imports.call import Call, Tensor, Value
from tensorwright.graph.imports.converters import ATEN
from tensorwright.graph.imports.open_dimensions import Sizes, within
from tensorwright.graph.imports.refusals import NO_OPERATOR, converting, unsupported
from tensorwright.graph.imports.shapes import InputShapes, input_types, open_names
from tensorwright.graph.imports.size_terms import Ratio, SizeArray, Term, index_of, term_of
from tensorwright.graph.imports.tensors import DTYPES as ONNX_DTYPES
from tensorwright.ops import TensorType

Values: TypeAlias = tuple[Value, ...]
_NAME = r"[A-Za-z_]\w*"
_ATEN = re.compile(r"torch\.ops\.aten\.(\w+)\.(\w+)")
_OTHERS = re.compile(r"torch\.ops\.transformers\.(grouped_mm_fallback)\.(\w+)")
_WRAPPERS = ("wrap_with_set_grad_enabled", "wrap_with_autocast")
_CHECKS = ("_assert_scalar", "_assert_async", "sym_constrain_range", "sym_constrain_range_for_size")
_ONNX_TYPE = {dtype: number for number, dtype in ONNX_DTYPES.items()}
_LEAST_TRACED = 2  # traces take 0 and 1 for constants
_EVAL = "call eval() on the module before it is exported"


def load_exported(
    record: ExportedGraph, input_shapes: InputShapes | None = None, sizes: Sizes | None = None
) -> Graph:
    """Import an exported graph of ATen operators.

    A symbol of its sizes becomes a named size, named for the first input and axis that has it:
    "x_0".  `input_shapes` and `sizes` are those of `load_onnx`.
    Raises:  ModelError for a record that contradicts itself; UnsupportedError for a node that
             cannot be imported, with the operator, the node and the reason; the InputError and
             UsageError of `load_onnx`.
    """
    if record.changed:
        changed = ", ".join(record.changed)
        reason = f"a call changes {changed}, but a graph is a function of its inputs"
        raise unsupported(record.label, "", reason, _EVAL)
    names, infos = _size_names(record), _infos(record)
    own, traced = (_own_bounds(record, input_shapes or {}, least) for least in (1, _LEAST_TRACED))

    def run(assumptions: importer.Assumptions) -> Graph:
        types = input_types(infos, input_shapes, sizes=assumptions.bounds)
        return _Import(record, names, assumptions).run(types)

    try:
        return importer.with_needed_bounds(run, own, sizes or {}, open_names(infos))
    except UndecidedError:
        if traced == own:
            raise
        return importer.with_needed_bounds(run, traced, sizes or {}, open_names(infos))


def declared_inputs(
    record: ExportedGraph, input_shapes: InputShapes | None = None, sizes: Sizes | None = None
) -> dict[str, TensorType]:
    """The types of the inputs, with no more bounds than the program itself and the caller say."""
    own = _own_bounds(record, input_shapes or {}, 1)
    return input_types(_infos(record), input_shapes, sizes=within(own, sizes or {}))


def _own_bounds(record: ExportedGraph, shapes: InputShapes, least: int) -> dict[str, str]:
    """The bounds that the program says of its open sizes, by our names.

    least   of a size for which the program says no more than that its trace has taken 0 and 1 for
            constants. PyTorch answers calls of 0 and 1, too. It is 0 if all sizes are numbers.
    """
    names, infos = _size_names(record), _infos(record)
    if all(info.name in shapes for info in infos):
        least = 0
    own = {
        names[symbol]: _bounds(symbol, record.ranges, least)
        for symbol in record.ranges
        if symbol in names
    }
    return {name: own[name] for name in open_names(infos) if name in own}


def _bounds(symbol: str, ranges: Mapping[str, tuple[int, int | None]], least: int) -> str:
    """As `_own_bounds`. The ranges of expressions (`2*s0` in 2..20) are what was asked for."""
    said, greatest = ranges[symbol]
    parts = [text for text in ranges if re.findall(_NAME, text) == [symbol] != [text]]
    at_one = [expr.parse_size(text, {symbol: 1}.get) for text in parts]
    is_traced = said <= _LEAST_TRACED and all(
        isinstance(value, int) and ranges[text][0] <= value
        for text, value in zip(parts, at_one, strict=True)
    )
    if is_traced:
        said = least if least < _LEAST_TRACED else max(said, 1)
    return f"{said}.." if greatest is None else f"{said}..{max(greatest, said)}"


def _size_names(record: ExportedGraph) -> dict[str, str]:
    """The name of each symbol, by the first input and axis that has it; its own if none has."""
    names: dict[str, str] = {}
    inputs = [each for each in record.inputs if each.meta and each.is_given]
    extents = [
        (extent, f"{each.name}_{axis}")
        for each in inputs
        for axis, extent in enumerate(each.meta.sizes if each.meta else ())
        if isinstance(extent, str)
    ]
    for extent, name in extents:
        if extent.isidentifier():
            names.setdefault(extent, name)
    for extent, _ in extents:
        for symbol in re.findall(_NAME, extent):
            names.setdefault(symbol, symbol)
    return names


def _infos(record: ExportedGraph) -> list[ValueInfoProto]:
    """The types of the inputs in ONNX's form, with our names for symbols."""
    names, infos = _size_names(record), []
    for given in record.inputs:
        if given.is_given and given.meta is not None:
            dtype, dims = dtype_of(given.meta.dtype, f"input {given.name}"), given.meta.sizes
            shape = [_renamed(each, names) if isinstance(each, str) else each for each in dims]
            infos.append(helper.make_tensor_value_info(given.name, _ONNX_TYPE[dtype], shape))
    return infos


def _renamed(text: str, names: Mapping[str, str]) -> str:
    return re.sub(_NAME, lambda match: names.get(match[0], match[0]), text)


class _Import(importer.Importing[Value]):
    """The state of one import."""

    def __init__(
        self, record: ExportedGraph, names: Mapping[str, str], assumptions: importer.Assumptions
    ) -> None:
        super().__init__(record.name, assumptions)
        self.record = record
        self.names = names
        self.constant: set[str] = set()
        self.views = in_place.Views(_last_reads(record))
        self.at = 0

    def run(self, types: Mapping[str, TensorType]) -> Graph:
        self.declare(types)
        self.convert_nodes(self.record.nodes)
        return self.finish()

    # -- inputs

    def declare(self, types: Mapping[str, TensorType]) -> None:
        symbols = self.symbols(types)
        for given in self.record.inputs:
            self.values[given.name] = self.input(given, types, symbols)
            if given.meta is not None:
                self.constant.add(given.name)

    def symbols(self, types: Mapping[str, TensorType]) -> dict[str, expr.Index]:
        """The size that each name stands for: of a plain extent, or of one in an expression."""
        pairs = [
            (extent, size)
            for each in self.record.inputs
            if each.meta is not None and each.name in types
            for extent, size in zip(each.meta.sizes, types[each.name].shape, strict=True)
            if isinstance(extent, str) and isinstance(size, int | expr.IndexExpr)
        ]
        inside = {size.name: size for _, extent in pairs for size in expr.named_sizes_of(extent)}
        plain = {self.names[text]: size for text, size in pairs if text in self.names}
        return {**inside, **plain}

    def input(
        self, given: Input, types: Mapping[str, TensorType], symbols: Mapping[str, expr.Index]
    ) -> Value:
        if given.name in types:
            type_ = types[given.name]
            return Tensor(self.builder.input(given.name, type_.shape, type_.dtype))
        if given.symbol:
            try:
                return expr.parse_size(_renamed(given.symbol, self.names), symbols.get)
            except ValueError as error:
                raise self.refused(
                    f"input {given.name}", f"no input has a dimension of the size {given.symbol}"
                ) from error
        if isinstance(given.constant, np.ndarray):
            return Tensor(self.builder.constant(given.constant))
        if given.owner:
            raise self.refused(f"input {given.name}", f"the values of {given.owner} are missing")
        return given.constant

    # -- nodes

    def convert_nodes(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self.at += 1
            results = self.assuming(partial(self.convert, node))
            for position, name in enumerate(node.outputs):
                if name:
                    self.values[name] = results[position] if position < len(results) else None

    def convert(self, node: Node) -> Values:
        """The values that the node's outputs stand for."""
        if in_place.is_arithmetic(node.target):
            terms = tuple(self.term(value, node) for _, value in node.arguments)
            with _converting(node):
                return (self.computed(node, terms),)
        operator = _operator(node)
        if operator in _WRAPPERS:
            return self.inlined(node)
        if operator in _CHECKS:
            return (None,) * len(node.outputs)
        call = self.call(node, operator)
        is_writing = operator.endswith("_") and not operator.endswith("__")
        plain = operator.removesuffix("_") if is_writing else operator
        with _converting(node):
            results = self.converted(node, call, plain)
            if is_writing:
                return self.written(node, call, results)
        self.note_view(node, plain)
        return results

    def computed(self, node: Node, terms: Sequence[Term]) -> Value:
        """A number that is computed from sizes."""
        try:
            term = in_place.computed(node.target, tuple(terms))
            return term if isinstance(term, bool | float) else index_of(term)
        except TypeError as error:
            ratios = [each for each in terms if isinstance(each, Ratio)]
            if not ratios:
                raise
            sizes = [size for each in ratios for size in (each.dividend, each.divisor)]
            call = Call(node.target, node.label, {}, self.builder)
            raise call.undecided(sizes, "result") from error

    def converted(self, node: Node, call: Call, operator: str) -> Values:
        converter = ATEN.get(operator)
        if converter is None:
            raise call.unsupported()
        return tuple(
            each.indices[0] if isinstance(each, SizeArray) else Tensor(call.as_tensor(each))
            for each in converter(call) or ()
        )

    def call(self, node: Node, operator: str) -> Call:
        arguments = {name: self.value(given, node) for name, given in node.arguments}
        return Call(operator, node.label, arguments, self.builder)

    def value(self, argument: Argument, node: Node) -> Value:
        """The value that an argument stands for."""
        match argument:
            case Ref(name):
                if name not in self.values:
                    raise self.refused(
                        node.label, f"it reads {name}, which no earlier node defines"
                    )
                value = self.values[name]
                if value is None and name not in self.constant:
                    verb = "returns" if name in node.outputs else "reads"
                    reason = f"it {verb} {name}, which tensorwright does not compute"
                    raise self.refused(node.label, reason)
                return value
            case ElementType():
                return dtype_of(argument, node.label)
            case tuple():
                return tuple(self.value(each, node) for each in argument)
            case Body():
                raise self.refused(
                    node.label, "tensorwright has no operator for a graph inside a graph"
                )
            case _:
                return argument

    def term(self, argument: Argument, node: Node) -> Term:
        value = self.value(argument, node)
        if isinstance(value, expr.IndexExpr):
            return term_of(value)
        if isinstance(value, bool | int | float):
            return value
        raise self.refused(node.label, "it computes with a number that only a call determines")

    def inlined(self, node: Node) -> Values:
        """The results of a graph that a node calls; the other arguments do not change values."""
        arguments = [given for _, given in node.arguments]
        bodies = [at for at, each in enumerate(arguments) if isinstance(each, Body)]
        body = arguments[bodies[0]] if bodies else None
        if not isinstance(body, Body):
            raise self.refused(node.label, "it must hold a graph, and does not")
        operands = [self.value(each, node) for each in arguments[bodies[0] + 1 :]]
        if len(operands) == 1 and isinstance(operands[0], tuple):
            operands = list(operands[0])
        for name, operand in zip(body.inputs, operands, strict=False):
            self.values[name] = operand
        self.convert_nodes(body.nodes)
        return tuple(self.value(each, node) for each in body.outputs)

    # -- writes

    def note_view(self, node: Node, operator: str) -> None:
        if operator not in in_place.VIEWS:
            return
        whole = dict(node.arguments).get("self") or dict(node.arguments).get("input")
        if isinstance(whole, Ref):
            for name in filter(None, node.outputs):
                self.views.add(name, in_place.View(operator, whole.name, node))

    def written(self, node: Node, call: Call, results: Values) -> Values:
        """Put the result of a writing operator in the place of its operand."""
        target = dict(node.arguments).get("self")
        new = results[0]
        if not isinstance(target, Ref) or not isinstance(new, Tensor):
            raise call.unsupported("what it writes into is not a tensor")
        name = target.name
        chain = self.views.chain(name)
        if chain[-1] in self.constant:
            owner = next(e.owner or e.name for e in self.record.inputs if e.name == chain[-1])
            raise call.unsupported(f"it writes into {owner}, which the caller holds", _EVAL)
        old = call.tensor("self")
        tensor = call.cast(new.name, call.dtype_of(old))
        others = self.views.read_later(name, self.at)
        self.values[name] = Tensor(tensor)
        if others:
            if not self.views.are_certain((name, *others)):
                raise call.unsupported(
                    "it writes into a tensor that may share elements with another one"
                )
            self.write_through(chain, others, call)
        if node.outputs and node.outputs[0]:
            self.views.add(node.outputs[0], in_place.View("alias", name, node))
        return (Tensor(tensor),)

    def write_through(self, chain: Sequence[str], others: Sequence[str], call: Call) -> None:
        """Compute the owner of the written tensor again, and the owner's other views."""
        for part in chain[:-1]:
            view = self.views.of(part)
            new, old = self.values[part], self.values[view.whole if view else ""]
            assert view is not None
            assert isinstance(new, Tensor)
            assert isinstance(old, Tensor)
            if len(view.node.outputs) > 1:
                raise call.unsupported(f"it writes into a part that {view.operator} returned")
            inverse = self.call(view.node, _operator(view.node))
            whole = in_place.written_through(view.operator, inverse, new.name, old.name)
            self.values[view.whole] = Tensor(whole)
        for other in others:
            again = self.views.of(other)
            if other in chain or again is None:
                continue
            results = (
                (self.values[again.whole],)
                if again.operator == "alias"
                else self.converted(
                    again.node, self.call(again.node, _operator(again.node)), again.operator
                )
            )
            self.values[other] = results[again.node.outputs.index(other)]

    # -- the end

    def finish(self) -> Graph:
        """The graph, whose outputs have the names of the record."""
        names: dict[str, str] = {}  # ours -> theirs
        inputs = frozenset(self.builder.inputs)
        results = []
        for position, output in enumerate(self.record.outputs):
            wish = output.name if isinstance(output, Ref) else f"output_{position}"
            if output is None:
                continue
            value = self.value(output, self.maker_of(output))
            if value is None:
                continue
            tensor = self.as_output(value, wish)
            if tensor in inputs or tensor in names:
                tensor = self.builder.add("identity", tensor)
            names[tensor] = free_name(wish, {*names.values(), *inputs}, 1)
            results.append(tensor)
        return rename_tensors(self.builder.finish(results), names)

    def maker_of(self, output: Argument) -> Node:
        """The node that makes an output, which is at fault where the output has no value."""
        name = output.name if isinstance(output, Ref) else ""
        makers = (node for node in self.record.nodes if name in node.outputs)
        return next(makers, Node("output", "output", (), ()))

    def as_output(self, value: Value, name: str) -> str:
        if isinstance(value, Tensor):
            return value.name
        call = Call("output", f"output {name}", {}, self.builder)
        if isinstance(value, expr.IndexExpr | int | float):
            kinds = ((bool, DType.BOOL), (float, DType.F32))
            dtype = next((dtype for kind, dtype in kinds if isinstance(value, kind)), DType.I64)
            return call.full((), value, dtype)
        raise self.refused(f"output {name}", "it is neither a tensor nor a number")

    def refused(self, where: str, reason: str) -> UnsupportedError:
        """The error for a record that cannot be imported."""
        return unsupported(where, "", reason)


def _operator(node: Node) -> str:
    """The operator of a target, without its namespace and overload."""
    match = _ATEN.fullmatch(node.target) or _OTHERS.fullmatch(node.target)
    if match is not None:
        return match[1]
    name = node.target.rpartition(".")[2]
    if name in _WRAPPERS:
        return name
    reason = f"it is not an operator of ATen, and {NO_OPERATOR}"
    raise unsupported(node.label, node.target.removeprefix("torch.ops."), reason)


def _converting(node: Node) -> AbstractContextManager[None]:
    """Refuse what fails inside the block in the name of the node."""
    operator = node.target.removeprefix("torch.ops.")
    return converting(node.label, operator, EXPORT_AGAIN)


def _last_reads(record: ExportedGraph) -> dict[str, int]:
    """The number of the last node that reads each value.

    Nodes are numbered in the order of conversion; outputs are read after all of them.
    """
    last: dict[str, int] = {}
    number = 0

    def read(argument: Argument, at: int) -> None:
        match argument:
            case Ref(name):
                last[name] = max(at, last.get(name, -1))
            case tuple():
                for each in argument:
                    read(each, at)

    def walk(nodes: Sequence[Node]) -> None:
        nonlocal number
        for node in nodes:
            number += 1
            for _, argument in node.arguments:
                read(argument, number)
                if isinstance(argument, Body):
                    walk(argument.nodes)

    walk(record.nodes)
    read(record.outputs, number + 1)
    return last
