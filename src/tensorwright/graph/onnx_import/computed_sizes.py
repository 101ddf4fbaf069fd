"""What a model computes of values, as sizes: nodes that decide them, and numbers that are extents.

A size that values decide is that of an operator's results (`decide`), or a number that nodes
compute (`size_from`).  Elements of a tensor that are known stay what they are (`numbers`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from tensorwright.base import AttributeValue, DType, UnsupportedError, sizes_advice
from tensorwright.expr import Index, minimum
from tensorwright.graph.onnx_import.call import Call, Operand
from tensorwright.graph.onnx_import.counted_sizes import greatest_value
from tensorwright.ops import as_size, number_of, product_of

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
    Raises:  UnsupportedError where nobody says how many there may be.
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

    Raises:  as `decide`.
    """
    least = greatest_value(call.builder, tensor)
    if least is not None:
        most = least if most is None else minimum(most, least)
    rows = decide(call, "range_below", (tensor,), most=most, word=word)[0]
    return call.sizes_of(rows)[0]


def is_computed(call: Call, position: int) -> bool:
    """Whether an input is known when the network runs, and not before: nodes make it of inputs, or
    of sizes in a way that no expression of sizes says.
    """
    operand = call.operand(position)
    if not isinstance(operand, str) or call.static_value(position) is not None:
        return False
    graph = call.builder.constant_graph(operand)
    return graph is None or bool(graph.sizes)


def numbers(call: Call, position: int, what: str) -> tuple[Index | str, ...]:
    """The elements of a 1-D integer input: numbers, sizes, and tensors of one element for what
    nodes compute.
    """
    operand = call.operand(position)
    if isinstance(operand, str) and is_computed(call, position):
        return _elements(call, operand)
    return call.indices(position, what)


def sizes_from(
    call: Call, position: int, what: str, most: Index | None = None
) -> tuple[Index, ...]:
    """The elements of a 1-D integer input; sizes stand for those that nodes compute.

    most   as of `decide`

    Raises:  as `decide`.
    """
    return tuple(
        size_from(call, each, most, str(at)) if isinstance(each, str) else each
        for at, each in enumerate(numbers(call, position, what))
    )


def size_at(call: Call, position: int, what: str, most: Index | None = None) -> Index:
    """An integer input of one element; a size stands for one that nodes compute.

    Raises:  as `decide`.
    """
    operand = call.operand(position)
    if isinstance(operand, str) and is_computed(call, position):
        return size_from(call, operand, most)
    return call.index(position, what)


def as_number(call: Call, number: Index | str, dtype: DType = DType.I64) -> Operand:
    """A number as a tensor without dimensions."""
    if isinstance(number, str):
        scalar = call.add("reshape", number, shape=()) if call.sizes_of(number) else number
        is_so = call.type_of(scalar).dtype is dtype
        return scalar if is_so else call.add("cast", scalar, to=dtype)
    if isinstance(number, int):
        return np.asarray(number, dtype.numpy)
    return call.add("full", shape=(), value=number, dtype=dtype)


def _elements(call: Call, tensor: str) -> tuple[Index | str, ...]:
    """The elements of a tensor of integers, as far back as they are only put together."""
    constant = call.builder.constant_value(tensor)
    if constant is not None:
        return tuple(int(item) for item in constant.reshape(-1))
    count = number_of(product_of(call.sizes_of(tensor)))
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
