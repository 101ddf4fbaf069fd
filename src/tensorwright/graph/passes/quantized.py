"""Quantised networks: multiply bytes where a target has instructions for that, else floats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from tensorwright.base import CpuTarget, DType, ShortProduct, dump
from tensorwright.graph.builder import GraphBuilder
from tensorwright.graph.graph import Graph, Layout, Node
from tensorwright.graph.infer import operator_of
from tensorwright.graph.interpret import run_node
from tensorwright.graph.partition import FEW_COLUMNS, Alternative, Decisions, Price
from tensorwright.graph.passes.identities import merge_common_subexpressions
from tensorwright.graph.passes.rebuild import Copy, rewrite, rewriting
from tensorwright.graph.workload import Workload, build_workload
from tensorwright.ops import (
    BY_DIMENSION,
    Array,
    LayoutPreference,
    Movement,
    Pattern,
    pack_pairs,
)

_BYTES = (DType.U8, DType.I8)
_MATRIX = 2  # dimensions
MOVES = frozenset((Movement.RESHAPE, Movement.REORDER, Movement.CROP))
_MOST_STEPS = 4  # from codes to codes
_MOST_IN_BLOCK = 1 << 16  # terms times the range of a code: times 2**15 they fit into 32 bits
_OF_CODES = "_integer"
PRODUCTS = ("conv_integer", "matmul_integer")  # those of floats have the names without the ending


@rewriting("quantize_linear")
def keep_codes(copy: Copy, node: Node) -> Sequence[str] | None:
    """Codes that become numbers, and these the same codes again, stay as they are.

    Rewrite:  quantize(f(dequantize(q, s, z)), t, y)    ->    q
    Requires: bytes; f computes each element by itself, and each code becomes itself. So a quantised
    clip or relu of numbers in its range does nothing.
    """
    steps = [node]
    while steps[-1].operator != "dequantize_linear":
        made = copy.producer(steps[-1].inputs[0])
        if made is None or len(steps) > _MOST_STEPS:
            return None
        steps.append(made)
    given = [tuple(copy.constant(name) for name in step.inputs[1:]) for step in steps]
    parameters = [
        [each.reshape(()) for each in part if each is not None and each.size == 1] for part in given
    ]
    alone = (operator_of(step).pattern is Pattern.ELEMENTWISE for step in steps)
    if not all(alone) or [*map(len, parameters)] != [*map(len, given)]:
        return None
    source = steps[-1].inputs[0]
    kind = copy.type_of(source)
    if kind.dtype not in _BYTES or kind != copy.result(node):
        return None
    all_codes = np.arange(kind.dtype.lowest, kind.dtype.highest + 1).astype(kind.dtype.numpy)
    values = all_codes
    for step, others in reversed([*zip(steps, parameters, strict=True)]):
        (values,) = run_node(step, (values, *others))
    return (source,) if np.array_equal(values, all_codes) else None


@rewriting("dequantize_linear")
def round_in_floats(copy: Copy, node: Node) -> Sequence[str] | None:
    """A tensor that is quantised and at once dequantised is rounded as a float instead.

    Rewrite:  dequantize(quantize(x, s, z), s, z)    ->    clip(round(x / s), low - z, high - z) * s
    The values are the same: codes and zero points are exact in f32. Requires:
    one scale for all elements, and a zero point that is known.
    """
    made = copy.producer(node.inputs[0])
    if made is None or made.operator != "quantize_linear":
        return None
    x, *theirs = made.inputs
    if not _are_equal(copy, theirs, node.inputs[1:]) or not _is_one(copy, theirs[0]):
        return None
    zero = copy.constant(theirs[1]) if len(theirs) > 1 else np.zeros(1, np.int64)
    if zero is None or zero.size != 1 or copy.type_of(x) != copy.result(node):
        return None
    byte_type, shift = copy.type_of(node.inputs[0]).dtype, int(zero.reshape(())[()])
    result = node.outputs[0]
    scale = _number(copy, theirs[0], f"{result}.scale")
    steps = copy.new("div", (x, scale), f"{result}.steps")
    whole = copy.new("round", (steps,), f"{result}.whole")
    low, high = float(byte_type.lowest) - shift, float(byte_type.highest) - shift
    inside = copy.new("clip", (whole,), f"{result}.inside", min=low, max=high)
    return copy.emit("mul", (inside, scale), node.outputs)


@rewriting("mul")
def keep_rounded(copy: Copy, node: Node) -> Sequence[str] | None:
    """Numbers that are rounded are not rounded again by the same scale, also in another order.

    Rewrite:  r = clip(round(x / s), a, b) * s; y = move(r); clip(round(y / s), a, b) * s    ->    y
    Requires: each multiple of s in the range becomes itself; move is a maximum of windows, too.
    """
    again = rounding_of(copy, node)
    if again is None:
        return None
    source, *parameters = again
    made = copy.producer(source)
    while made is not None and made.operator != "mul":
        moves = operator_of(made).movement in MOVES or made.operator == "max_pool"
        made = copy.producer(made.inputs[0]) if moves else None
    first = None if made is None else rounding_of(copy, made)
    if first is None or [*first[1:]] != parameters:
        return None
    scale, low, high = first[1:]
    multiples = np.arange(low, high + 1, dtype=np.float32)
    is_same = np.array_equal(np.rint(multiples * scale / scale), multiples)
    return (source,) if is_same and copy.type_of(source) == copy.result(node) else None


def rounding_of(copy: Copy, node: Node) -> tuple[str, np.float32, float, float] | None:
    """What a node gives rounded to multiples of a number, that number and the range of multiples;
    None if it does something else.
    """
    inside, scale = copy.producer(node.inputs[0]), copy.constant(node.inputs[1])
    if node.operator != "mul" or inside is None or inside.operator != "clip":
        return None
    whole = copy.producer(inside.inputs[0])
    steps = whole and copy.producer(whole.inputs[0])
    if whole is None or steps is None or whole.operator != "round" or steps.operator != "div":
        return None
    divisor = copy.constant(steps.inputs[1])
    if scale is None or divisor is None or scale.size != 1 or not np.array_equal(scale, divisor):
        return None
    low, high = inside.attribute_map["min"], inside.attribute_map["max"]
    if not isinstance(low, float) or not isinstance(high, float):
        return None
    return steps.inputs[0], np.float32(scale.reshape(())[()]), low, high


@rewriting(*(each.removesuffix(_OF_CODES) for each in PRODUCTS), "gemm")
def multiply_quantized(copy: Copy, node: Node) -> Sequence[str] | None:
    """Products of dequantised numbers become products of codes, which are scaled afterwards.

    Rewrite:  matmul(dequantize(a, s, z), dequantize(w, t))
                  ->  f32(matmul_integer(a, w, z)) * (s * t)
    The same for gemm and convolutions. Requires: bytes; a has one scale and one zero point; w is
    constant, with a scale for all or for each column, and codes around 0. `lower_quantized` says
    how these are multiplied.
    """
    product = _product_of(copy, node)
    if product is None:
        return None
    data, weights, scales = product
    is_convolution = operator_of(node).is_convolution
    operator = PRODUCTS[0] if is_convolution else PRODUCTS[1]
    given = node.attribute_map if is_convolution else {}
    wish = node.outputs[0]
    inputs = (data.inputs[0], copy.hold(weights, f"{wish}.weights"), *data.inputs[2:])
    sums = copy.new(operator, inputs, f"{wish}.sums", **given)
    floats = copy.new("cast", (sums,), f"{wish}.f32", to=DType.F32)
    column = (-1, *(1,) * (weights.ndim - 2)) if is_convolution else (-1,)
    scale = _number(copy, data.inputs[1], f"{wish}.scale")
    held = copy.hold(scales.reshape(column), f"{wish}.scales")
    both = copy.new("mul", (scale, held), f"{wish}.both")
    if len(node.inputs) < 3:
        return copy.emit("mul", (floats, both), node.outputs)
    scaled = copy.new("mul", (floats, both), f"{wish}.scaled")
    bias = node.inputs[2]
    if is_convolution:
        shape = (copy.type_of(bias).shape[0], *column[1:])
        bias = copy.new("reshape", (bias,), f"{wish}.bias", shape=shape)
    return copy.emit("add", (scaled, bias), node.outputs)


def _product_of(copy: Copy, node: Node) -> tuple[Node, Array, Array] | None:
    """The node that dequantises the data of a product, the codes (i8) of its weights and their
    scales.
    """
    data, made = (copy.producer(name) for name in node.inputs[:2])
    if data is None or made is None or not _is_of_bytes(copy, data):
        return None
    attributes = node.attribute_map
    factors = [attributes.get(name, 1) for name in ("alpha", "beta", "groups")]
    if factors != [1, 1, 1] or attributes.get("trans_a", False):
        return None
    if made.operator != "dequantize_linear" or len(made.inputs) > 3:
        return None
    weights, scales, *zeros = (copy.constant(name) for name in made.inputs)
    if weights is None or scales is None or weights.dtype != np.int8 or scales.dtype != np.float32:
        return None
    if any(zero is None or zero.any() for zero in zeros):
        return None
    is_convolution = operator_of(node).is_convolution
    is_turned = bool(attributes.get("trans_b", False))
    if not is_convolution and weights.ndim != _MATRIX:
        return None
    columns = 0 if is_convolution or is_turned else 1
    axis = made.attribute_map["axis"]
    if scales.size != 1 and int(axis) % weights.ndim != columns:  # type: ignore[arg-type]
        return None
    return data, np.ascontiguousarray(weights.T) if is_turned else weights, scales


def _is_of_bytes(copy: Copy, node: Node) -> bool:
    """Whether bytes become f32 by one scale and one zero point."""
    if node.operator != "dequantize_linear":
        return False
    kinds = [copy.type_of(name) for name in node.inputs]
    has_one = all(_is_one(copy, name) for name in node.inputs[1:])
    return has_one and kinds[0].dtype in _BYTES and kinds[1].dtype is DType.F32


def lower_quantized(graph: Graph, target: CpuTarget, price: Price | None = None) -> Graph:
    """Choose how a target multiplies codes: as bytes or as i16, if it has an instruction for the
    shape. Else codes become floats, whose products are at least as fast as those of other integers;
    convolutions of floats lie in any layout, and may be Winograd's, which the price decides.

    Rewrite:  f32(matmul_integer(x, w, z))      ->    f32(matmul_integer(x, w) - z * sum of w)
              f32(matmul_integer(x, w, z, v))   ->    f32(matmul_integer(i16(x - z), i16(w - v)))
              f32(conv_integer(x, w, z, v))     ->    conv(f32(x) - f32(z), f32(w - v))
    Sums of floats that are not float exactly are rounded.
    """
    if all(node.operator not in PRODUCTS for node in graph.nodes):
        return graph
    in_blocks = _kept_in_blocks(graph)
    decide = None if price is None else Decisions(price)
    told: list[str] = []  # how each product is computed, and why

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        if node.operator != "cast" or node.attribute_map["to"] is not DType.F32:
            return None
        made = copy.producer(node.inputs[0])
        if made is None or made.operator not in PRODUCTS or not copy.only_use(node.inputs[0]):
            return None
        if copy.type_of(made.inputs[0]).dtype not in _BYTES:
            return None  # it is lowered already
        weights = _weights_less_zero(copy, made)
        if weights is None or not all(_is_one(copy, n) for n in made.inputs[2:3]):
            return None
        wish = node.outputs[0]
        product = wish.removesuffix(".f32")
        is_suited = made.operator == "matmul_integer" or wish in in_blocks
        whole = [p for p in target.short_products() if is_suited and _is_whole(copy, made, p)]
        has_codes = _has_plain_codes(copy, made)
        products = [p for p in whole if has_codes and p.weights is DType.I8]
        data = _data_for(copy, made, wish, products)
        if data is not None:
            told.append(f"{product}: bytes")
            return _multiply_bytes(copy, data, made, node.outputs, products)
        floats = _codes_less_zero(copy, made, f"{wish}.codes")
        pairs = [p for p in whole if p.weights is DType.I16]
        is_priced = pairs and _is_better_in_floats(copy, made, weights, pairs[0].columns, decide)
        if pairs and not is_priced:
            told.append(f"{product}: i16")
            short = copy.new("cast", (floats,), f"{wish}.i16", to=DType.I16)
            given = copy.hold(weights.astype(np.int16), f"{made.inputs[1]}.i16")
            sums = _sums(copy, made, (short, given), f"{wish}.sums", pairs)
            return copy.emit("cast", (sums,), node.outputs, to=DType.F32)
        why = "groups, or extents that no instruction divides" if is_suited else "a plain layout"
        told.append(f"{product}: f32, {'it is expected to be faster' if is_priced else why}")
        held = copy.hold(weights.astype(np.float32), f"{made.inputs[1]}.f32")
        operator = made.operator.removesuffix(_OF_CODES)
        return copy.emit(operator, (floats, held), node.outputs, **made.attribute_map)

    lowered, count = rewrite(graph, rule)
    dump("graph", "products-of-codes", "\n".join(["products of codes", *told]).__str__)
    return _stored_short(lowered) if count else graph


def _is_better_in_floats(
    copy: Copy, made: Node, weights: Array, block: int, decide: Decisions | None
) -> bool:
    """Whether a convolution of floats, with channels in blocks, is expected to be faster."""
    if decide is None or weights.ndim == _MATRIX or weights.size == prod(weights.shape[:2]):
        return False  # no other algorithm computes it with fewer multiplications

    attributes: dict[str, Any] = dict(made.attribute_map)

    def workloads(operator: str, dtype: DType) -> Iterator[Workload]:
        builder = GraphBuilder()
        x = builder.input("x", copy.type_of(made.inputs[0]).shape, dtype)
        w = builder.constant(weights.astype(dtype.numpy))
        y = builder.add(operator, x, w, **attributes)
        layouts = MappingProxyType(dict.fromkeys((x, y), Layout(1, block)))
        placed = replace(builder.finish([y]), layouts=layouts)
        yield build_workload(placed, placed.nodes).workload

    short = Alternative("i16", workloads(made.operator, DType.I16))
    floats = Alternative("f32", workloads(made.operator.removesuffix(_OF_CODES), DType.F32))
    decision = decide(made.outputs[0], short, floats, 1.0)
    return decision is not None and decision.is_changed


def _stored_short(graph: Graph) -> Graph:
    """Numbers of which products read i16, and others f32, are stored as i16.

    Rewrite:  i16(t), f(t)    ->    s = i16(t), f(f32(s))    where t is whole numbers in a range
    """
    graph, _ = merge_common_subexpressions(graph)
    readers = Counter(name for node in graph.nodes for name in {*node.inputs})
    short = {
        node.inputs[0]
        for node in graph.nodes
        if node.operator == "cast" and graph.types[node.outputs[0]].dtype is DType.I16
    }
    shared = {name for name in short - {*graph.outputs} if readers[name] > 1}

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        if node.operator != "clip" or shared.isdisjoint(node.outputs):
            return None
        wish = node.outputs[0]
        inside = copy.new("clip", node.inputs, f"{wish}.inside", **node.attribute_map)
        stored = copy.new("cast", (inside,), f"{wish}.i16", to=DType.I16)
        return copy.emit("cast", (stored,), node.outputs, to=DType.F32)

    return rewrite(graph, rule)[0]


def multiply_blocks(graph: Graph, target: CpuTarget) -> Graph:
    """Rows that may be rounded are multiplied by packed codes as i16, if the target has an
    instruction for that.

    Rewrite:  matmul(x, dequantize_blocks(w, s, z))    ->    matmul_blocks(x, w, s, z)
    Requires: sums of a block fit into 32 bits.
    """
    products = [p for p in target.short_products() if p.weights is DType.I16]
    if not products or all(node.operator != "dequantize_blocks" for node in graph.nodes):
        return graph

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        packed = copy.producer(node.inputs[1]) if node.operator == "matmul" else None
        if packed is None or packed.operator != "dequantize_blocks":
            return None
        attributes = packed.attribute_map
        words, scale = (copy.constant(name) for name in packed.inputs[:2])
        if words is None or scale is None or not attributes["is_rounded"]:
            return None
        bits = packed.integer("bits")
        block = words.shape[0] * (32 // bits) // scale.shape[0]
        is_exact = block << bits <= _MOST_IN_BLOCK
        if not is_exact or words.shape[1] % products[0].columns:
            return None
        halves = copy.hold(pack_pairs(words, bits), f"{node.outputs[0]}.halves")
        inputs = (node.inputs[0], halves, *packed.inputs[1:])
        return copy.emit("matmul_blocks", inputs, node.outputs, bits=bits)

    lowered, count = rewrite(graph, rule)
    return lowered if count else graph


def _kept_in_blocks(graph: Graph) -> set[str]:
    """The tensors whose channels may lie in blocks: no reader of them, or of results made of them
    element by element, needs the plain layout.
    """
    plain = set(graph.outputs)
    for node in reversed(graph.nodes):
        operator = operator_of(node)
        moves_blocks = operator.movement is Movement.JOIN or operator.movement in BY_DIMENSION
        follows = moves_blocks or operator.layout is LayoutPreference.ANY
        is_plain = operator.layout is LayoutPreference.PLAIN and not follows
        if is_plain or (follows and not plain.isdisjoint(node.outputs)):
            plain.update(node.inputs)
    return graph.types.keys() - plain


def _has_plain_codes(copy: Copy, node: Node) -> bool:
    """Whether the weights are signed codes around 0, and what surrounds an image is known."""
    weights = copy.constant(node.inputs[1])
    zeros = [copy.constant(name) for name in node.inputs[3:]]
    if weights is None or weights.dtype != np.int8:
        return False
    if any(zero is None or zero.any() for zero in zeros):
        return False
    is_padded = node.operator == "conv_integer" and any(node.ints("pads"))
    return not is_padded or len(node.inputs) < 3 or copy.constant(node.inputs[2]) is not None


def _is_whole(copy: Copy, node: Node, product: ShortProduct) -> bool:
    """Whether the terms and columns of a product are whole ones of an instruction."""
    weights = copy.constant(node.inputs[1])
    if weights is None:
        return False
    if node.operator == "matmul_integer":
        rank = len(copy.type_of(node.inputs[0]).shape)
        terms, columns = weights.shape[0], weights.shape[-1]
        is_whole = FEW_COLUMNS * (-columns % product.columns) <= columns
        is_matrix = weights.ndim == _MATRIX and rank >= _MATRIX
        return is_matrix and is_whole and terms % product.terms == 0
    return node.attribute_map["groups"] == 1 and all(
        extent % product.columns == 0 for extent in weights.shape[:2]
    )


def _data_for(
    copy: Copy, node: Node, wish: str, products: Sequence[ShortProduct]
) -> tuple[str, ...] | None:
    """The data of a product as an instruction takes them, and their zero point if they have one;
    codes that are made here are made signed or unsigned, others are not.
    """
    data, zeros = node.inputs[0], node.inputs[2:3]
    taken = {product.data for product in products}
    own = copy.type_of(data).dtype
    if not taken or own in taken:
        return (data, *zeros) if taken else None
    made, zero = copy.producer(data), copy.constant(zeros[0]) if zeros else None
    if made is None or zero is None or made.operator != "quantize_linear":
        return None
    if len(made.inputs) < 3 or not _are_equal(copy, made.inputs[2:], zeros):
        return None
    other = products[0].data
    shift = int(other.lowest) - int(own.lowest)
    shifted = copy.hold((zero.astype(np.int16) + shift).astype(other.numpy), f"{wish}.zero")
    inputs, axis = (*made.inputs[:2], shifted), made.attribute_map["axis"]
    return copy.new("quantize_linear", inputs, f"{wish}.bytes", axis=axis), shifted


def _multiply_bytes(
    copy: Copy,
    data: tuple[str, ...],
    made: Node,
    outputs: Sequence[str],
    products: Sequence[ShortProduct],
) -> Sequence[str]:
    """The product without zero point, less the contribution of the zero point to each column."""
    wish, weights = outputs[0], made.inputs[1]
    codes_in, attributes = data[0], made.attribute_map
    pads = made.ints("pads") if made.operator == "conv_integer" else ()
    point = copy.constant(data[1]) if len(data) > 1 else np.zeros(1)
    if any(pads) and point is not None and point.any():  # around an image is its zero point
        rank = len(pads) // 2
        around, fill = (0, 0, *pads[:rank], 0, 0, *pads[rank:]), float(point.reshape(())[()])
        codes_in = copy.new("pad", (codes_in,), f"{wish}.padded", pads=around, value=fill)
        attributes = {**attributes, "pads": (0,) * len(pads)}
    changed = replace(made, attributes=tuple(attributes.items()))
    sums = _sums(copy, changed, (codes_in, weights), f"{wish}.sums", products)
    quantized = copy.constant(weights)
    if quantized is not None and (point is None or point.any()):
        if made.operator == "conv_integer":
            totals = quantized.sum(tuple(range(1, quantized.ndim)), np.int32)
            totals = totals.reshape(-1, *(1,) * (quantized.ndim - 2))
        else:
            totals = quantized.sum(0, np.int32)
        columns = copy.hold(totals, f"{wish}.columns")
        number = copy.new("reshape", data[1:], f"{wish}.zero", shape=())
        whole = copy.new("cast", (number,), f"{wish}.i32", to=DType.I32)
        more = copy.new("mul", (whole, columns), f"{wish}.more")
        sums = copy.new("sub", (sums, more), f"{wish}.less")
    return copy.emit("cast", (sums,), outputs, to=DType.F32)


def _sums(
    copy: Copy, node: Node, inputs: tuple[str, str], wish: str, products: Sequence[ShortProduct]
) -> str:
    """The sums of a product of short numbers; columns of a matrix without use are added, and cut
    off again, so that the first instruction, which has the widest vectors, takes whole ones.
    """
    data, weights = inputs
    given = copy.constant(weights)
    rest = 0
    if given is not None and node.operator == "matmul_integer":
        rest = -given.shape[-1] % products[0].columns
    if given is None or not rest:
        return copy.new(node.operator, inputs, wish, **node.attribute_map)
    more = copy.hold(np.pad(given, ((0, 0), (0, rest))), f"{weights}.whole")
    sums = copy.new(node.operator, (data, more), wish, **node.attribute_map)
    last = len(copy.type_of(sums).shape) - 1
    parts = {"starts": (0,), "ends": (given.shape[-1],), "axes": (last,), "steps": (1,)}
    return copy.new("slice", (sums,), f"{wish}.columns", **parts)


def _weights_less_zero(copy: Copy, node: Node) -> Array | None:
    """The weights of a product less their zero points; None where they are not constant."""
    quantized = copy.constant(node.inputs[1])
    zero = copy.constant(node.inputs[3]) if len(node.inputs) > 3 else np.zeros((), np.int32)
    if quantized is None or zero is None:
        return None
    shift = zero.astype(np.int32)
    if node.operator == "conv_integer" and shift.size > 1:
        shift = shift.reshape(-1, *(1,) * (quantized.ndim - 1))
    weights: Array = quantized.astype(np.int32) - shift
    return weights


def _codes_less_zero(copy: Copy, node: Node, wish: str) -> str:
    """The data of a product less its zero point, in f32; codes that are made here are not."""
    made, zeros = copy.producer(node.inputs[0]), node.inputs[2:3]
    if made is not None and made.operator == "quantize_linear" and _has_one_scale(copy, made):
        byte_type = copy.type_of(node.inputs[0]).dtype
        low, high = float(byte_type.lowest), float(byte_type.highest)
        scale = _number(copy, made.inputs[1], f"{wish}.scale")
        steps = copy.new("div", (made.inputs[0], scale), f"{wish}.steps")
        whole = copy.new("round", (steps,), f"{wish}.whole")
        point = _zero_point(copy, zeros)
        if point is not None and point == _zero_point(copy, made.inputs[2:]):
            low, high = low - point, high - point  # as `round_in_floats` has it
            return copy.new("clip", (whole,), f"{wish}.inside", min=low, max=high)
        if len(made.inputs) > 2:
            shift = _number(copy, made.inputs[2], f"{wish}.shift")
            whole = copy.new("add", (whole, shift), f"{wish}.shifted")
        whole = copy.new("clip", (whole,), f"{wish}.inside", min=low, max=high)
    else:
        whole = copy.new("cast", node.inputs[:1], f"{wish}.whole", to=DType.F32)
    if not zeros:
        return whole
    zero = _number(copy, zeros[0], f"{wish}.zero")
    return copy.new("sub", (whole, zero), f"{wish}.moved")


def _zero_point(copy: Copy, names: Sequence[str]) -> float | None:
    """The zero point, 0 if none is given; None if it is not constant."""
    if not names:
        return 0.0
    constant = copy.constant(names[0])
    return None if constant is None else float(constant.reshape(())[()])


def _number(copy: Copy, name: str, wish: str) -> str:
    """A tensor of one element as a number in f32."""
    constant = copy.constant(name)
    if constant is not None:
        return copy.hold(constant.reshape(()).astype(np.float32), wish)
    number = copy.new("reshape", (name,), wish, shape=())
    if copy.type_of(number).dtype is DType.F32:
        return number
    return copy.new("cast", (number,), f"{wish}.f32", to=DType.F32)


def _has_one_scale(copy: Copy, node: Node) -> bool:
    """Whether f32 becomes codes by one scale and one zero point."""
    kind = copy.type_of(node.inputs[0]).dtype
    return kind is DType.F32 and all(_is_one(copy, n) for n in node.inputs[1:])


def _is_one(copy: Copy, name: str) -> bool:
    """Whether a tensor is known to have one element."""
    return all(extent == 1 for extent in copy.type_of(name).shape)


def _are_equal(copy: Copy, left: Sequence[str], right: Sequence[str]) -> bool:
    """Whether tensors are the same, or constants alike."""
    if len(left) != len(right):
        return False
    for ours, theirs in zip(left, right, strict=True):
        pair = copy.constant(ours), copy.constant(theirs)
        if ours != theirs and (
            pair[0] is None or pair[1] is None or not np.array_equal(pair[0], pair[1])
        ):
            return False
    return True
