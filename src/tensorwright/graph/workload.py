"""Workloads: fused pieces of a network as tensor programs, the unit that is scheduled and tuned.

The inputs and outputs of a workload have physical shapes, so a blocked tensor has one dimension
more.  Nothing in it comes from the names or the order of the network around it: equal pieces of
different networks are equal workloads and share their records.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from tensorwright import expr
from tensorwright.base import InternalError, Printer, UsageError
from tensorwright.graph.graph import PLAIN, Graph, Layout, Node, free_name
from tensorwright.graph.infer import operator_of
from tensorwright.graph.physical import physical_compute, physical_shape
from tensorwright.graph.sizes import representative
from tensorwright.ops import Array, Movement, TensorType, sizes_of

_NAMED_OPERATORS = 5
_UNNAMED = frozenset((Movement.COPY, Movement.RESHAPE))


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """A tensor program, and which of its inputs are constants.

    name       readable, from the operators: conv2d_add_relu; not unique
    inputs     in the order in which the outputs reach them, with physical shapes
    constants  the names of the inputs whose values are known when the program is compiled
    outputs    stages with physical shapes; every stage and input has a name of its own
    key        16 hexadecimal digits of the program, its names and its constants; a trace or a time
    of a workload holds for all workloads with its key
    usual      typical numbers of sizes that their bounds do not tell
    """

    name: str
    inputs: tuple[expr.Placeholder, ...]
    constants: frozenset[str]
    outputs: tuple[expr.Compute, ...]
    key: str
    usual: tuple[tuple[str, int], ...] = ()

    @property
    def stages(self) -> tuple[expr.Compute, ...]:
        """Every tensor that is computed, in an order in which they could run."""
        order = expr.topological_order(*self.outputs)
        return tuple(tensor for tensor in order if isinstance(tensor, expr.Compute))

    @property
    def input_types(self) -> tuple[TensorType, ...]:
        """Element types and physical shapes of the inputs."""
        return tuple(_type_of(tensor) for tensor in self.inputs)

    @property
    def output_types(self) -> tuple[TensorType, ...]:
        """Element types and physical shapes of the outputs."""
        return tuple(_type_of(tensor) for tensor in self.outputs)

    @property
    def sizes(self) -> tuple[expr.NamedSize, ...]:
        """The named sizes in the extents and indices, sorted by name."""
        return expr.sizes_of_tensors(self.outputs)

    @property
    def typical_sizes(self) -> dict[str, int]:
        """The number of each named size for which schedules are chosen."""
        return representative(self.sizes) | dict(self.usual)

    @property
    def size_bytes(self) -> dict[str, int]:
        """How much memory each input and output takes, by name."""
        tensors: tuple[expr.Tensor, ...] = (*self.inputs, *self.outputs)
        types = (*self.input_types, *self.output_types)
        return {each.name: type_.size_bytes for each, type_ in zip(tensors, types, strict=True)}

    def __str__(self) -> str:
        page = Printer()
        with page.block(f"workload {self.name} {self.key}"):
            for tensor in self.inputs:
                page.line(f"{'constant' if tensor.name in self.constants else 'input'} {tensor}")
            for stage in self.stages:
                page.line(str(stage))
            page.line(f"output {', '.join(tensor.name for tensor in self.outputs)}")
        return str(page)


@dataclass(frozen=True, slots=True)
class BoundWorkload:
    """A workload and the tensors of a graph that it reads and writes, in its order."""

    workload: Workload
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def build_workload(graph: Graph, nodes: Sequence[Node]) -> BoundWorkload:
    """The tensor program of some nodes, which are in topological order; it gives the outputs of the
    last.

    Constants of one element become numbers in the program, other constants stay inputs.  Networks
    repeat themselves: equal pieces are built once.
    Raises:  InternalError for a node without a tensor expression.
    """
    for node in nodes:
        if operator_of(node).meaning is None:
            reason = "no tensor expression says it"
            raise InternalError(stage="workload", where=node.label, reason=reason)
    piece, names = _piece(graph, nodes)
    bound = _built(piece)
    return BoundWorkload(
        bound.workload,
        tuple(names[int(each)] for each in bound.inputs),
        tuple(names[int(each)] for each in bound.outputs),
    )


@dataclass(frozen=True, slots=True)
class _Piece:
    """Nodes and their tensors, which are called by numbers in order of appearance.

    signature   all that a workload depends on; pieces are equal if it is
    graph       types, layouts and constants; those of several elements have no values
    """

    signature: tuple[object, ...]
    graph: Graph = field(compare=False)


def _piece(graph: Graph, nodes: Sequence[Node]) -> tuple[_Piece, tuple[str, ...]]:
    """A piece, and the name of each of its tensors in the graph."""
    numbers: dict[str, str] = {}
    for node in nodes:
        for name in (*node.inputs, *node.outputs):
            numbers.setdefault(name, str(len(numbers)))
    renamed = [node.renamed(numbers) for node in nodes]
    types = {number: graph.types[name] for name, number in numbers.items()}
    layouts = {number: graph.layouts.get(name, PLAIN) for name, number in numbers.items()}
    constants = {
        number: _without_values(graph.constants[name])
        for name, number in numbers.items()
        if name in graph.constants
    }
    signature = (
        # as text, where True is not 1 and 0.0 not -0.0
        *(f"{each.operator} {each.inputs} {each.outputs} {each.attributes}" for each in renamed),
        *types.values(),
        *layouts.values(),
        *((number, array.size == 1 and array.tobytes()) for number, array in constants.items()),
    )
    given = renamed[-1].outputs
    small = Graph(graph.name, (), constants, tuple(renamed), given, types, layouts)
    return _Piece(signature, small), tuple(numbers)


def _without_values(array: Array) -> Array:
    """An array of one element as it is, others of the same shape without memory."""
    return array if array.size == 1 else np.broadcast_to(np.zeros((), array.dtype), array.shape)


@lru_cache(maxsize=1 << 12)
def _built(piece: _Piece) -> BoundWorkload:
    """The workload of a piece, bound to its numbers."""
    graph, nodes = piece.graph, piece.graph.nodes
    given = nodes[-1].outputs
    plain, layouts = _plain_program(graph, nodes)
    order = expr.topological_order(*(plain[name] for name in given))
    numbers = {tensor: number for tensor in order if (number := _number(graph, tensor)) is not None}
    names = _short_names([tensor for tensor in order if tensor not in numbers], graph)
    sources: dict[expr.Tensor, expr.Tensor | expr.Const] = dict(numbers)
    origin: dict[str, str] = {}
    for tensor in order:
        if tensor in numbers:
            continue
        if isinstance(tensor, expr.Compute):
            physical = physical_compute(tensor, layouts, sources)
            sources[tensor] = replace(physical, name=names[tensor])
        else:
            layout = graph.layouts.get(tensor.name, PLAIN)
            shape = physical_shape(sizes_of(graph.types[tensor.name]), layout)
            entry = expr.Placeholder(names[tensor], shape, tensor.dtype)
            origin[entry.name] = tensor.name
            sources[tensor] = entry
    made = tuple(each for name in given if isinstance(each := sources[plain[name]], expr.Compute))
    results = expr.join_open_axes(made)
    inputs = tuple(t for t in expr.topological_order(*results) if isinstance(t, expr.Placeholder))
    fixed = frozenset(each.name for each in inputs if origin[each.name] in graph.constants)
    key = workload_key(results, inputs, fixed)
    workload = Workload(workload_name(graph, nodes), inputs, fixed, results, key)
    return BoundWorkload(workload, tuple(origin[each.name] for each in inputs), given)


Program: TypeAlias = expr.Compute | Sequence[expr.Compute] | Workload
Constants: TypeAlias = Mapping[str, Any]


def program(
    outputs: expr.Compute | Sequence[expr.Compute], constants: Iterable[str] = (), name: str = ""
) -> Workload:
    """A tensor expression as a program that can be tuned and compiled; tensors keep their names.

    outputs    the results; their placeholders are the inputs of the program
    constants  names of inputs that stay the same from call to call: they are packed once
    name       for people; that of the last output where ""
    Raises:    UsageError for equal names, and constants that are not inputs.
    """
    outputs = (outputs,) if isinstance(outputs, expr.Compute) else tuple(outputs)
    fixed = frozenset(constants)
    order = expr.topological_order(*outputs)
    names = [tensor.name for tensor in order]
    inputs = tuple(tensor for tensor in order if isinstance(tensor, expr.Placeholder))
    where = f"expression {name or outputs[-1].name}"
    repeated = next((each for each in names if names.count(each) > 1), "")
    if repeated:
        reason = f"two tensors are called {repeated}"
        raise UsageError(stage="workload", where=where, reason=reason, remedy="rename one")
    strange = sorted(fixed - {tensor.name for tensor in inputs})
    if strange:
        reason = f"{strange[0]} is not one of its placeholders"
        remedy = "its placeholders are " + (", ".join(each.name for each in inputs) or "none")
        raise UsageError(stage="workload", where=where, reason=reason, remedy=remedy)
    key = workload_key(outputs, inputs, fixed)
    return Workload(name or outputs[-1].name, inputs, fixed, outputs, key)


def as_program(model: Any, constants: Constants | None) -> Workload | None:
    """Tensor expressions as a program; None for anything else."""
    if isinstance(model, Workload):
        return model
    if isinstance(model, expr.Compute):
        return program(model, constants=constants or ())
    is_sequence = isinstance(model, (tuple, list)) and len(model) > 0
    if is_sequence and all(isinstance(each, expr.Compute) for each in model):
        return program(model, constants=constants or ())
    return None


def check_constants(workload: Workload, constants: Constants | None) -> dict[str, Array]:
    """The values of a program's constants as arrays of their types.

    Raises:  UsageError for one that is missing, or of another shape or type.
    """
    given = dict(constants or {})
    types = {t.name: n for t, n in zip(workload.inputs, workload.input_types, strict=True)}
    arrays: dict[str, Array] = {}
    for name in sorted(workload.constants | given.keys()):
        array = np.ascontiguousarray(given[name]) if name in given else None
        if name not in workload.constants:
            reason = "the program was made without this constant"
            remedy = "leave it out, or name it in the constants of `program`"
        elif array is None:
            reason, remedy = "its value is not given", f"give constants={{{name!r}: ARRAY}}"
        elif array.shape != types[name].shape or array.dtype != types[name].dtype.numpy:
            reason = f"{array.dtype} {array.shape} is given, {types[name]} is declared"
            remedy = f"give an array of {types[name].dtype.numpy} {types[name].shape}"
        else:
            arrays[name] = array
            continue
        raise UsageError(stage="compile", where=f"constant {name}", reason=reason, remedy=remedy)
    return arrays


def bind_workload(workload: Workload, values: Mapping[str, expr.Index]) -> Workload:
    """The workload with numbers for some of its named sizes, or sizes that have other bounds.

    Raises:  ExpressionError for a number that a size may not be.
    """
    given = {s: _quotient(s, values[s.name]) for s in workload.sizes if s.name in values}
    if not given:
        return workload
    outputs = expr.bind_tensors(workload.outputs, given)
    read = {t.name: t for t in expr.topological_order(*outputs) if isinstance(t, expr.Placeholder)}
    inputs = tuple(
        read[t.name]
        if t.name in read
        else replace(t, shape=tuple(expr.substitute(n, given) for n in t.shape))
        for t in workload.inputs  # perhaps no longer read
    )
    usual = tuple((name, number) for name, number in workload.usual if name not in values)
    key = workload_key(outputs, inputs, workload.constants, usual)
    return replace(workload, inputs=inputs, outputs=outputs, key=key, usual=usual)


def _quotient(size: expr.NamedSize, value: expr.Index) -> expr.Index:
    """The value of a size's atom, which is the size over its divisor."""
    return size.checked(value) if isinstance(value, int) else expr.exact_div(value, size.divisor)


def reference(workload: Workload, arrays: Sequence[Array]) -> tuple[Array, ...]:
    """The outputs from arrays for the inputs, all in physical layout, by the evaluator."""
    return expr.evaluate(workload.outputs, dict(zip(workload.inputs, arrays, strict=True)))


def workload_name(graph: Graph, nodes: Sequence[Node]) -> str:
    """The operators of a group, in order: conv2d_add_relu; long ones end in and_7_more."""
    parts = [
        _operator_name(graph, node) for node in nodes if operator_of(node).movement not in _UNNAMED
    ]
    if len(parts) > _NAMED_OPERATORS + 1:
        hidden = len(parts) - _NAMED_OPERATORS
        parts = [*parts[:_NAMED_OPERATORS], f"and_{hidden}_more"]
    return "_".join(parts) or nodes[-1].operator


def _operator_name(graph: Graph, node: Node) -> str:
    if operator_of(node).is_convolution:
        name = f"{node.operator}{len(graph.types[node.inputs[0]].shape) - 2}d"
        groups = node.attribute_map.get("groups", 1)
        channels = graph.types[node.inputs[0]].shape[1]
        if groups != 1:
            name = f"{'depthwise' if groups == channels else 'grouped'}_{name}"
        return name
    return node.operator


def _type_of(tensor: expr.Tensor) -> TensorType:
    return TensorType(tensor.dtype, tensor.shape)


def _plain_program(
    graph: Graph, nodes: Sequence[Node]
) -> tuple[dict[str, expr.Tensor], dict[expr.Tensor, Layout]]:
    """Every tensor of the nodes by its name in the graph, and the layouts of all stages."""
    tensors: dict[str, expr.Tensor] = {}
    layouts: dict[expr.Tensor, Layout] = {}
    for node in nodes:
        meaning = operator_of(node).meaning
        assert meaning is not None, "asked before"
        for name in node.inputs:
            if name not in tensors:
                type_ = graph.types[name]
                tensors[name] = expr.Placeholder(name, sizes_of(type_), type_.dtype)
                layouts[tensors[name]] = graph.layouts.get(name, PLAIN)
        results = meaning(tuple(tensors[n] for n in node.inputs), node.attribute_map)
        results = tuple(map(_as_typed, results, (graph.types[n] for n in node.outputs)))
        for name, result in zip(node.outputs, results, strict=True):
            tensors[name] = result
            layouts[result] = graph.layouts.get(name, PLAIN)
        for stage in expr.topological_order(*results):
            if stage not in layouts:
                layouts[stage] = _stage_layout(graph, node, stage)
    return tensors, layouts


def _as_typed(result: expr.Compute, type_: TensorType) -> expr.Compute:
    """A result whose extents are written as those of its type: equal sizes may look different."""
    shape = sizes_of(type_)
    if result.shape == shape or not type_.is_open:
        return result
    pairs = zip(result.axes, shape, strict=True)
    return replace(result, axes=tuple(replace(axis, extent=extent) for axis, extent in pairs))


_CHANNELS = 1  # the dimension


def _stage_layout(graph: Graph, node: Node, stage: expr.Tensor) -> Layout:
    """The layout of a tensor inside an operator's meaning.

    That of the output where the shapes are equal; else that of the first input where both have one
    extent along the blocked dimension (padding); else that of the output under the same condition;
    else, where both agree as far as the channels, or the stage has them several times (phases), the
    blocks of the output, or the channels last if the output has them last; else plain.
    """
    neighbours = [node.outputs[0], *node.inputs[:1]]
    for name in neighbours:
        if graph.types[name].shape == stage.shape:
            return graph.layouts.get(name, PLAIN)
    for name in reversed(neighbours):
        layout = graph.layouts.get(name, PLAIN)
        shape = graph.types[name].shape
        is_alike = len(shape) == len(stage.shape) and shape[0] == stage.shape[0]
        if is_alike and (layout.block == 1 or shape[layout.axis] == stage.shape[layout.axis]):
            return layout
    layout = graph.layouts.get(node.outputs[0], PLAIN)
    is_last = layout == _channels_last(len(graph.types[node.outputs[0]].shape))
    output = sizes_of(graph.types[node.outputs[0]])
    if not _has_several(stage.shape, output, _CHANNELS if is_last else layout.axis):
        return PLAIN
    if is_last:
        return _channels_last(len(stage.shape))
    return layout if layout.block > 1 and not layout.order else PLAIN


def _has_several(shape: Sequence[expr.Index], output: Sequence[expr.Index], axis: int) -> bool:
    """Whether a shape agrees with another before an axis, and has a multiple of its extent."""
    if len(shape) <= axis or shape[:axis] != output[:axis]:
        return False
    extent, own = output[axis], shape[axis]
    are_numbers = isinstance(own, int) and isinstance(extent, int)
    return own == extent or (are_numbers and own % extent == 0)


def _channels_last(rank: int) -> Layout:
    """NHWC and similar layouts: dimension 1 moves to the end."""
    return Layout(order=(0, *range(2, rank), 1))


def _number(graph: Graph, tensor: expr.Tensor) -> expr.Const | None:
    """The value of an input that is a constant of one element."""
    array = graph.constants.get(tensor.name) if isinstance(tensor, expr.Placeholder) else None
    if array is None or array.size != 1:
        return None
    return expr.constant(array.reshape(()).item(), tensor.dtype)


def _short_names(order: Iterable[expr.Tensor], graph: Graph) -> Mapping[expr.Tensor, str]:
    """x, x_1, ... for inputs, w, w_1, ... for constants; stages keep theirs, numbered if taken."""
    names: dict[expr.Tensor, str] = {}
    taken: set[str] = set()
    for tensor in order:
        wish = tensor.name
        if isinstance(tensor, expr.Placeholder):
            wish = "w" if tensor.name in graph.constants else "x"
        names[tensor] = free_name(wish, taken, 1)
        taken.add(names[tensor])
    return names


def workload_key(
    outputs: tuple[expr.Compute, ...],
    inputs: tuple[expr.Placeholder, ...],
    constants: frozenset[str],
    usual: Iterable[tuple[str, int]] = (),
) -> str:
    """The key of a tensor program. Names are part of it, because traces name stages and axes.

    Typical numbers are part of it as powers of 4, because a schedule suits similar ones.
    """
    fixed = frozenset(tensor for tensor in inputs if tensor.name in constants)
    lines = [expr.canonical_text(outputs, fixed)]
    lines += [each.constraints for each in expr.sizes_of_tensors(outputs)]
    lines += [f"usual {name} {number.bit_length() // 2}" for name, number in usual]
    for tensor in expr.topological_order(*outputs):
        axes = (*tensor.axes, *tensor.reduce_axes) if isinstance(tensor, expr.Compute) else ()
        lines.append(" ".join([tensor.name, *(axis.name for axis in axes)]))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
