"""Operators that exporters write as several become one again: mish, and attention.

That of attention runs for processors, behind the search of rewrites, which knows the parts better
than the whole; cards have their own tiles for the products.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tensorwright.base import DType, Target
from tensorwright.graph.builder import GraphBuilder
from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.nested import map_nested
from tensorwright.graph.passes.rebuild import Copy, rewriting
from tensorwright.ops import product_of, sizes_of

_RANKS = (3, 4)


@rewriting("mul")
def recognise_mish(copy: Copy, node: Node) -> Sequence[str] | None:
    """Rewrite:  x * tanh(softplus(x))    ->    mish(x)

    One exponential instead of three functions. Requires: no other node reads the parts.
    """
    for x, factor in (node.inputs, node.inputs[::-1]):
        outer = copy.only(factor, "tanh")
        inner = copy.only(outer.inputs[0], "softplus") if outer else None
        if inner and inner.inputs[0] == x:
            return copy.emit("mish", (x,), node.outputs)
    return None


def recognise_attention(graph: Graph, _: Target) -> Graph:
    """Rewrite:  softmax(mul((q * a) (transpose(k) * b), c) + mask) v
              ->    attention(q, k, v, mask, scale=a*b*c)
              where(isnan(w), 0, w) v for such weights w    ->    attention(nan_weights="zero")
              where(m, 0, -inf) as the mask                 ->    the bools m
    Requires: f32 or f64; a, b and c are constants of one element; nothing else reads the scores and
              the weights; q, k and v have the same leading extents.
    The factors are multiplied first; else it is the same for all numbers, infinities and NaN.
    """
    if all(node.operator != "softmax" for node in graph.nodes):
        return graph
    return _merge_attention(graph)[0]


@rewriting("matmul")
def _merge_attention(copy: Copy, node: Node) -> Sequence[str] | None:
    weights, nan_weights = _softmax(copy, node.inputs[0])
    if weights is None or not _is_along_last(copy, weights):
        return None
    added, scale = weights.inputs[0], 1.0
    mask = ""
    if copy.only(added, "add"):
        added, mask = _masked(copy, added)
    while copy.only_use(added) and (factor := _factor(copy, added)):
        added, scale = factor[0], scale * factor[1]
    product = copy.only(added, "matmul")
    if product is None:
        return None
    q, turned = product.inputs
    while factor := _factor(copy, q):
        q, scale = factor[0], scale * factor[1]
    while factor := _factor(copy, turned):
        turned, scale = factor[0], scale * factor[1]
    made = copy.producer(turned)
    if made is None or made.operator != "transpose" or not scale:
        return None
    return _attention(copy, node, (q, turned, node.inputs[1], mask), scale, nan_weights)


def _softmax(copy: Copy, name: str) -> tuple[Node | None, str]:
    """The softmax whose result, or that without NaN, a tensor is, and what becomes of NaN."""
    chosen = copy.only(name, "where")
    if chosen is None:
        return copy.only(name, "softmax"), "kept"
    condition, zero, weights = chosen.inputs
    test, made = copy.only(condition, "isnan"), copy.producer(weights)
    is_guard = test is not None and test.inputs[0] == weights and copy.uses(weights) == 2
    is_alike = copy.type_of(weights) == copy.type_of(name) and _is_all(copy, zero, 0)
    is_softmax = made is not None and made.operator == "softmax"
    return (made, "zero") if is_guard and is_alike and is_softmax else (None, "")


def _is_along_last(copy: Copy, softmax: Node) -> bool:
    type_ = copy.type_of(softmax.outputs[0])
    rank = len(type_.shape)
    axis = softmax.attribute_map["axis"]
    is_wide = type_.dtype in (DType.F32, DType.F64)
    return is_wide and rank in _RANKS and axis in (-1, rank - 1)


def _masked(copy: Copy, name: str) -> tuple[str, str]:
    """What a sum adds to the scores of a product; a mask is bools where they choose 0 and -inf."""
    made = copy.producer(name)
    assert made is not None, "its operator was asked for"
    scores, mask = made.inputs
    multiple = scores
    while factor := _factor(copy, multiple):
        multiple = factor[0]
    product = copy.producer(multiple)
    if product is None or product.operator != "matmul":
        scores, mask = mask, scores
    if copy.type_of(scores) != copy.type_of(name):
        return name, ""
    chosen = copy.producer(mask)
    if chosen is not None and chosen.operator == "where":
        condition, zero, lost = chosen.inputs
        is_whole = copy.type_of(condition).shape == copy.type_of(mask).shape
        if is_whole and _is_all(copy, zero, 0) and _is_all(copy, lost, -math.inf):
            mask = condition
    return scores, mask


def _factor(copy: Copy, name: str) -> tuple[str, float] | None:
    """The tensor of which a tensor is a multiple, and the number."""
    made = copy.producer(name)
    if made is None or made.operator not in ("mul", "div"):
        return None
    pairs = (made.inputs, made.inputs[::-1]) if made.operator == "mul" else (made.inputs,)
    for source, number in pairs:
        array = copy.constant(number)
        if array is not None and array.size == 1 and copy.type_of(source) == copy.type_of(name):
            value = float(array.reshape(()))
            return source, value if made.operator == "mul" else 1 / value
    return None


def _is_all(copy: Copy, name: str, number: float) -> bool:
    array = copy.constant(name)
    return array is not None and array.size == 1 and float(array.reshape(())) == number


def _attention(
    copy: Copy, node: Node, operands: tuple[str, str, str, str], scale: float, nan_weights: str
) -> Sequence[str] | None:
    """The operator in the place of the second product; three dimensions become four."""
    q, turned, v, mask = operands
    shapes = [sizes_of(copy.type_of(name)) for name in (q, turned, v)]
    rank = len(shapes[0])
    if any(len(shape) != rank or shape[:-2] != shapes[0][:-2] for shape in shapes):
        return None
    (output,) = node.outputs

    def with_heads(name: str, part: str) -> str:
        shape = sizes_of(copy.type_of(name))
        if rank == 4 or len(shape) < 3:
            return name
        return copy.new("reshape", (name,), f"{output}.{part}", shape=(shape[0], 1, *shape[1:]))

    perm = (*range(rank - 2), rank - 1, rank - 2)
    k = copy.new("transpose", (turned,), f"{output}.k", perm=perm)
    inputs = [with_heads(name, part) for name, part in ((q, "q"), (k, "keys"), (v, "v"))]
    if mask:
        inputs.append(with_heads(mask, "mask"))
    names = node.outputs if rank == 4 else (copy.free(f"{output}.heads"),)
    (y,) = copy.emit("attention", inputs, names, scale=scale, nan_weights=nan_weights)
    if rank == 4:
        return (y,)
    shape = sizes_of(copy.type_of(y))
    return copy.emit("reshape", (y,), node.outputs, shape=(shape[0], *shape[2:]))


@rewriting("attention")
def share_heads(copy: Copy, node: Node) -> Sequence[str] | None:
    """Rewrite:  attention(q, repeat(k), repeat(v))    ->    attention(q, k, v)

    Exporters write each head of k and v as often as heads of q read it. Requires: the same number
    of times for both.
    """
    heads = [_unrepeated(copy, name) for name in node.inputs[1:3]]
    sources = [each for each in heads if each is not None]
    sizes = [sizes_of(copy.type_of(source))[1] for source in sources]
    if len(sources) != 2 or sizes[0] != sizes[1]:
        return None
    wish = node.outputs[0]
    shared = []
    for part, source in zip(("keys", "values"), sources, strict=True):
        batch, count, _, *rows = sizes_of(copy.type_of(source))
        shape = (batch, count, *rows)
        shared.append(copy.new("reshape", (source,), f"{wish}.{part}", shape=shape))
    inputs = (node.inputs[0], *shared, *node.inputs[3:])
    return copy.emit("attention", inputs, node.outputs, **node.attribute_map)


def _unrepeated(copy: Copy, name: str) -> str | None:
    """The tensor (b, g, 1, s, e) of which one of (b, g * n, s, e) has each head n times."""
    joined = copy.producer(name)
    made = copy.producer(joined.inputs[0]) if joined and joined.operator == "reshape" else None
    if made is None or made.operator != "expand":
        return None
    few, many = (sizes_of(copy.type_of(each)) for each in (made.inputs[0], made.outputs[0]))
    is_repeated = (
        len(few) == len(many) == 5 and few[2] == 1 and few[:2] + few[3:] == many[:2] + many[3:]
    )
    whole = (many[0], product_of(many[1:3]), *many[3:])
    return made.inputs[0] if is_repeated and sizes_of(copy.type_of(name)) == whole else None


@rewriting("batch_norm")
def lower_batch_norm(copy: Copy, node: Node) -> Sequence[str] | None:
    """Write an inference-time batch normalisation as a scale and a shift, which other passes merge
    into the operator before.

    Rewrite:  batch_norm(x, scale, bias, mean, var)    ->    x * f + (bias - mean * f)
              where f = scale / sqrt(var + epsilon)
    Requires: scale, bias, mean and var are constants.  The factors are computed in f64.
    """
    arrays = [copy.constant(name) for name in node.inputs[1:]]
    statistics = [array.astype(np.float64) for array in arrays if array is not None]
    if len(statistics) < 4:
        return None
    scale, bias, mean, var = statistics
    epsilon = node.number("epsilon")
    factor = scale / np.sqrt(var + epsilon)
    type_ = copy.type_of(node.inputs[0])
    column = (-1, *(1,) * (len(type_.shape) - 2))
    (output,) = node.outputs
    factors = factor.reshape(column).astype(type_.dtype.numpy)
    shifts = (bias - mean * factor).reshape(column).astype(type_.dtype.numpy)
    held = copy.hold(factors, f"{output}.scale")
    scaled = copy.new("mul", (node.inputs[0], held), f"{output}.scaled")
    return copy.emit("add", (scaled, copy.hold(shifts, f"{output}.shift")), node.outputs)


@rewriting("group_norm")
def lower_group_norm(copy: Copy, node: Node) -> Sequence[str] | None:
    """Write a normalisation of groups so that the operator behind it can compute its scale and
    shift, in its own layout.

    Rewrite:  group_norm(x, scale, bias)    ->    reshape(instance_norm(rows, 1, 0)) * scale + bias
              where rows = reshape(x, (n, groups, rest)); scale and bias have a row per channel
    """
    x, scale, bias = node.inputs
    type_, groups = copy.type_of(x), int(node.number("groups"))
    batch, *rest = sizes_of(type_)
    (output,) = node.outputs

    rows = copy.new(
        "reshape", (x,), f"{output}.rows", shape=(batch, groups, product_of(rest) // groups)
    )
    units = [
        copy.hold(np.full(groups, number, type_.dtype.numpy), f"{output}.{name}")
        for name, number in (("ones", 1), ("zeros", 0))
    ]
    centred = copy.new(
        "instance_norm", (rows, *units), f"{output}.normal", epsilon=node.number("epsilon")
    )
    whole = copy.new("reshape", (centred,), f"{output}.whole", shape=type_.shape)
    column = (rest[0], *(1,) * (len(rest) - 1))
    factors = copy.new("reshape", (scale,), f"{output}.scale", shape=column)
    shifts = copy.new("reshape", (bias,), f"{output}.shift", shape=column)
    scaled = copy.new("mul", (whole, factors), f"{output}.scaled")
    return copy.emit("add", (scaled, shifts), node.outputs)


_HALVES = (DType.F16, DType.BF16)
_KEEPS_BITS = "bitcast"


def compute_float16_as_float32(graph: Graph) -> Graph:
    """The network with every half an f32; only its inputs and outputs stay as they are.

    Results are rounded once, at the end, not after each operator. A network that looks at the bits
    of halves stays as it is.
    """
    graph = map_nested(graph, compute_float16_as_float32)
    kinds = {type_.dtype for type_ in graph.types.values()}
    if kinds.isdisjoint(_HALVES) or any(node.operator == _KEEPS_BITS for node in graph.nodes):
        return graph
    halves = {name for name, type_ in graph.types.items() if type_.dtype in _HALVES}
    given = [name for name in graph.inputs if name in halves]
    asked = [n for n in dict.fromkeys(graph.outputs) if n in halves and n not in given]
    ends = {*given, *asked}  # these keep their names and types
    names = {name: f"{name}.f32" if name in ends else name for name in graph.types}
    builder = GraphBuilder(graph.name)
    for name in graph.inputs:
        builder.input(name, graph.types[name].shape, graph.types[name].dtype)
    for name in given:
        names[name] = builder.add("cast", name, output=names[name], to=DType.F32)
    for name, array in graph.constants.items():
        wide = array.astype(DType.F32.numpy) if name in halves else array
        names[name] = builder.constant(wide, names[name])
    for node in graph.nodes:
        wishes = tuple(names[name] for name in node.outputs)
        inputs = [names[name] for name in node.inputs]
        if node.graphs:
            _keep_nested(builder, graph, node, names)
            continue
        attributes = {k: DType.F32 if v in _HALVES else v for k, v in node.attributes}
        made = builder.apply(node.operator, inputs, wishes, **attributes)
        names.update(zip(node.outputs, made, strict=True))
    for name in asked:
        builder.add("cast", names[name], output=name, to=graph.types[name].dtype)
    return builder.finish([name if name in ends else names[name] for name in graph.outputs])


def _keep_nested(builder: GraphBuilder, graph: Graph, node: Node, names: dict[str, str]) -> None:
    """A node whose graphs read and give halves, between casts."""
    inputs = [
        builder.add("cast", names[name], to=graph.types[name].dtype)
        if graph.types[name].dtype in _HALVES
        else names[name]
        for name in node.inputs
    ]
    halves = [graph.types[name].dtype in _HALVES for name in node.outputs]
    wishes = [
        f"{names[name]}.half" if is_half else names[name]
        for name, is_half in zip(node.outputs, halves, strict=True)
    ]
    made = builder.nest(node.operator, inputs, node.graphs, wishes, **node.attribute_map)
    for name, given, is_half in zip(node.outputs, made, halves, strict=True):
        wide = builder.add("cast", given, output=names[name], to=DType.F32) if is_half else given
        names[name] = wide
