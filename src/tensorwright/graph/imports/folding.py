"""Compute a node while the model is read, where its inputs are known, if that is little work.

A size that values decide is that of an operator's results (`decide`), or a number that nodes
compute (`size_from`).  Elements of a tensor that are known stay what they are (`numbers`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import prod
from types import MappingProxyType

import numpy as np
from onnx import ModelProto, defs

from tensorwright.base import AttributeValue, DType, UnsupportedError, sizes_advice
from tensorwright.expr import Index, minimum
from tensorwright.graph.builder import GraphBuilder
from tensorwright.graph.imports.call import Call, Converter, Operand, Results
from tensorwright.graph.imports.open_dimensions import all_nodes, greatest_value
from tensorwright.graph.imports.reading import read_model
from tensorwright.graph.imports.size_terms import SizeArray, evaluate_terms
from tensorwright.graph.interpret import interpret
from tensorwright.ops import as_size, number_of, product_of

_DECIDING = frozenset(
    "axes axis block_shape cond constant_value delta depth dft_length ends frame_length frame_step "
    "image_shape k limit lower_edge_hertz M num_mel_bins output_shape pads repeats roi sample_rate "
    "scales shape size sizes split start starts steps training_mode upper_edge_hertz".split()
)
"""What ONNX calls inputs on which shapes and nodes depend."""
_MORE = {"ConstantOfShape": (0,), "TopK": (1,), "GRU": (4,), "LSTM": (4,), "RNN": (4,)}


@cache
def _deciding(operator: str) -> tuple[int, ...]:
    """The inputs of an operator on which shapes and nodes depend."""
    if operator in _MORE or not defs.has(operator):
        return _MORE.get(operator, ())
    inputs = defs.get_schema(operator).inputs
    return tuple(at for at, each in enumerate(inputs) if each.name in _DECIDING)


_STATIC = ("Shape", "Size")


def value_inputs(source: str | os.PathLike[str] | bytes | ModelProto) -> tuple[str, ...]:
    """The inputs whose values shapes depend on: what `load_onnx` may need in `input_values`."""
    graph = read_model(source).model.graph
    needed: set[str] = set()
    for node in reversed(tuple(all_nodes(graph.node))):
        for position in _deciding(node.op_type):
            if position < len(node.input):
                needed.add(node.input[position])
        if node.op_type not in _STATIC and needed.intersection(node.output):
            needed.update(node.input)
            bodies = (each.g for each in node.attribute if each.HasField("g"))
            needed.update(info.name for body in bodies for info in body.output)
    held = {tensor.name for tensor in graph.initializer}
    return tuple(i.name for i in graph.input if i.name in needed and i.name not in held)


_LIMIT = 1 << 16  # elements; larger constants are folded by `simplify`
_SIZES_LIMIT = 1 << 12  # elements that are computed one by one


def fold(call: Call, converter: Converter) -> Results | None:
    """The values of a node, None where it stays: inputs are not known, or it is much work.

    Codes of weights stay, since products may be of them.
    """
    if call.operator == "DequantizeLinear" and call.rank(0) > 1:
        return None
    if call.operator == "CastLike":  # of its second input it reads the type alone
        like: Operand = np.zeros(0, call.dtype_of(1).numpy)
        call = replace(call, operands=(call.operand(0), like))
    operands = [operand for operand in call.operands if operand is not None]
    if any(isinstance(operand, str) for operand in operands):
        return None
    if any(isinstance(operand, SizeArray) for operand in operands):
        return _fold_sizes(call, converter)
    if sum(operand.size for operand in operands if isinstance(operand, np.ndarray)) > _LIMIT:
        return None
    scratch = GraphBuilder("folding")
    results = converter(replace(call, builder=scratch))
    if results is None:
        return None
    graph = scratch.finish([name for name in results if isinstance(name, str)])
    if sum(prod(each.extents) for each in graph.types.values()) > 4 * _LIMIT:
        return None
    computed = interpret(graph, {})
    return tuple(computed[name] if isinstance(name, str) else name for name in results)


def _fold_sizes(call: Call, converter: Converter) -> Results | None:
    """As `fold`, where elements depend on sizes: what these do not decide is left to nodes."""
    scratch = GraphBuilder("folding")
    inputs: dict[str, SizeArray] = {}
    operands = list(call.operands)
    for at, operand in enumerate(call.operands):
        if isinstance(operand, SizeArray) and at not in _deciding(call.operator):
            name = scratch.input(f"in{at}", operand.terms.shape, operand.dtype)
            inputs[name], operands[at] = operand, name
    try:
        results = converter(replace(call, builder=scratch, operands=tuple(operands)))
        if results is None:
            return None
        graph = scratch.finish([name for name in results if isinstance(name, str)])
        if any(each.is_open for each in graph.types.values()):
            return None
        if sum(prod(each.extents) for each in graph.types.values()) > _SIZES_LIMIT:
            return None
        computed = evaluate_terms(graph, inputs)
    except (UnsupportedError, TypeError):
        return None
    if computed is None:
        return None
    return tuple(computed[name] if isinstance(name, str) else name for name in results)


_KEEPING = frozenset({"identity", "reshape", "squeeze", "unsqueeze"})


def decide(
    call: Call,
    operator: str,
    inputs: Sequence[Operand],
    attributes: Mapping[str, AttributeValue] = MappingProxyType({}),
    *,
    most: Index | None,
    least: int = 0,
    word: str = "count",
) -> tuple[str, ...]:
    """The results of an operator whose values decide how many there are.

    most, least   how many there may be, as the graph says it
    word          of the size's name, at its end

    An operator on the same tensors decides the same size.
    """
    tensors = tuple(map(call.as_tensor, inputs))
    same = call.builder.alike(operator, tensors, attributes)
    if same is not None:
        return same.outputs
    name = f"{call.stem}_{word}"
    made = call.counted.of(name, most, least)
    if made is None:
        raise _unbounded(call, name, tensors)
    size, bound = made
    return call.apply(operator, *tensors, count=size, most=bound, **attributes)


def _unbounded(call: Call, name: str, tensors: Sequence[str]) -> UnsupportedError:
    """The error for a size without an upper bound."""
    graphs = filter(None, map(call.builder.constant_graph, tensors))
    sizes = ", ".join(dict.fromkeys(size.name for graph in graphs for size in graph.sizes))
    what, instead = "values decide the size", "give the input that it depends on a value"
    if sizes:
        what, instead = f"nodes compute of {sizes} the size", f"give a number for {sizes}"
    return call.unsupported(
        f"{what} {name}, and nothing says how large it may be",
        sizes_advice({name: "..64"}, "say it: ", f", or {instead}"),
    )


def size_from(call: Call, tensor: str, most: Index | None = None, word: str = "count") -> Index:
    """An integer that nodes compute, as a size.

    most   as of `decide`
    """
    least = greatest_value(call.builder, tensor)
    if least is not None:
        most = least if most is None else minimum(most, least)
    rows = decide(call, "range_below", (tensor,), most=most, word=word)[0]
    return call.sizes(rows)[0]


def is_computed(call: Call, position: int) -> bool:
    """Whether nodes compute an input when the network runs, and no expression of sizes says it."""
    operand = call.operand(position)
    if not isinstance(operand, str) or call.static_value(position) is not None:
        return False
    graph = call.builder.constant_graph(operand)
    return graph is None or bool(graph.sizes)


def numbers(call: Call, position: int, what: str) -> tuple[Index | str, ...]:
    """The elements of a 1-D integer input: numbers, sizes, and tensors that nodes compute."""
    operand = call.operand(position)
    if isinstance(operand, str) and is_computed(call, position):
        return _elements(call, operand)
    return call.indices(position, what)


def sizes_from(
    call: Call, position: int, what: str, most: Index | None = None
) -> tuple[Index, ...]:
    """The elements of a 1-D integer input; sizes stand for those that nodes compute.

    most   as of `decide`
    """
    return tuple(
        size_from(call, each, most, str(at)) if isinstance(each, str) else each
        for at, each in enumerate(numbers(call, position, what))
    )


def size_at(call: Call, position: int, what: str, most: Index | None = None) -> Index:
    """An integer input of one element; a size stands for one that nodes compute."""
    operand = call.operand(position)
    if isinstance(operand, str) and is_computed(call, position):
        return size_from(call, operand, most)
    return call.index(position, what)


def as_number(call: Call, number: Index | str, dtype: DType = DType.I64) -> str:
    """A number as a tensor without dimensions."""
    if not isinstance(number, str):
        return call.full((), number, dtype)
    return call.cast(call.add("reshape", number, shape=()) if call.rank(number) else number, dtype)


def _elements(call: Call, tensor: str) -> tuple[Index | str, ...]:
    """The elements of a tensor of integers, as far back as they are only put together."""
    constant = call.builder.constant_value(tensor)
    if constant is not None:
        return tuple(int(item) for item in constant.reshape(-1))
    count = number_of(product_of(call.sizes(tensor)))
    node = call.builder.producer(tensor)
    if node is not None and node.operator == "concat":
        return tuple(each for name in node.inputs for each in _elements(call, name))
    if node is not None and node.operator in _KEEPING:
        return _elements(call, node.inputs[0])
    if node is not None and node.operator == "full":
        return (as_size(node.attribute_map["value"]),) * count
    if count == 1:
        return (tensor,)
    flat = call.add("reshape", tensor, shape=(count,))
    return tuple(call.take(flat, at, 0) for at in range(count))
