"""Codes of bytes between the products of a quantised network.

A target that multiplies bytes keeps, moves and joins codes, not numbers. Codes are made without a
division: the constants of products and sums before a rounding are divided by the scale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tensorwright.base import CpuTarget, DType
from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.infer import operator_of
from tensorwright.graph.passes.identities import merge_common_subexpressions, remove_dead_code
from tensorwright.graph.passes.quantized import MOVES, PRODUCTS, keep_codes, rounding_of
from tensorwright.graph.passes.rebuild import Copy, Pass, constant_operand, rewriting
from tensorwright.ops import Movement

_MOVES = frozenset({*MOVES, Movement.JOIN})
_MOST_ROUNDS = 30


def round_once(graph: Graph, _: CpuTarget) -> Graph:
    """Keep the codes of a network that multiplies bytes from product to product; round numbers in
    steps of the codes.
    """
    multiplied = {
        graph.types[node.inputs[0]].dtype for node in graph.nodes if node.operator in PRODUCTS
    }
    kinds = [kind for kind in (DType.U8, DType.I8) if kind in multiplied]
    if kinds:
        graph = _repeated(
            graph,
            (
                store_codes(kinds[0]),
                merge_common_subexpressions,
                move_codes,
                join_codes,
                keep_codes,
            ),
        )
        graph = _repeated(graph, (round_to_codes, number_rounded))
    return _repeated(graph, (clip_once, round_in_steps))


def _repeated(graph: Graph, passes: Sequence[Pass]) -> Graph:
    """A graph after passes, until none changes it."""
    for _ in range(_MOST_ROUNDS):
        before = graph
        for each in passes:
            changed, count = each(graph)
            graph = remove_dead_code(changed)[0] if count else graph
        if graph is before:
            break
    return graph


def store_codes(kind: DType) -> Pass:
    """Numbers that are rounded are numbers of codes.

    Rewrite:  clip(round(x / s), low, high) * s    ->    dequantize(quantize(x, s, z), s, z)
    Requires: the range is that of the type of the codes, and z a code.
    """

    @rewriting("mul")
    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        matched = rounding_of(copy, node)
        if matched is None:
            return None
        source, scale, low, high = matched
        point = kind.lowest - low
        if point + high != kind.highest or not kind.lowest <= point <= kind.highest:
            return None
        wish = node.outputs[0]
        step = copy.hold(np.asarray(scale), f"{wish}.step")
        zero = copy.hold(np.asarray(point, kind.numpy), f"{wish}.zero")
        quantized = copy.new("quantize_linear", (source, step, zero), f"{wish}.codes", axis=1)
        return copy.emit("dequantize_linear", (quantized, step, zero), node.outputs, axis=1)

    return rule


def _parameters(copy: Copy, node: Node) -> tuple[np.float32, int] | None:
    """The scale and the zero point of a node that makes or reads codes, if each is one number."""
    matched = [copy.constant(name) for name in node.inputs[1:]]
    if len(matched) != 2 or any(each is None or each.size != 1 for each in matched):
        return None
    scale, zero = (each.reshape(-1)[0] for each in matched if each is not None)
    return (np.float32(scale), int(zero)) if scale.dtype == np.float32 and scale > 0 else None


@rewriting()
def move_codes(copy: Copy, node: Node) -> Sequence[str] | None:
    """Rewrite:  move(dequantize(q, s, z))    ->    dequantize(move(q), s, z)

    Requires: one scale and one zero point, the same for all that is joined; a maximum of windows
              moves codes, too.
    """
    is_move = node.operator == "max_pool" or operator_of(node).movement in _MOVES
    if not is_move or len(node.outputs) != 1:
        return None
    made = [copy.producer(name) for name in node.inputs]
    numbers = [each for each in made if each is not None and each.operator == "dequantize_linear"]
    if len(numbers) != len(made) or not numbers:
        return None
    first = _parameters(copy, numbers[0])
    if first is None or any(_parameters(copy, each) != first for each in numbers[1:]):
        return None
    if len({copy.type_of(each.inputs[0]).dtype for each in numbers}) > 1:
        return None
    quantized = [each.inputs[0] for each in numbers]
    moved = copy.new(node.operator, quantized, f"{node.outputs[0]}.codes", **node.attribute_map)
    return copy.emit("dequantize_linear", (moved, *numbers[0].inputs[1:]), node.outputs, axis=1)


@rewriting("quantize_linear")
def join_codes(copy: Copy, node: Node) -> Sequence[str] | None:
    """Rewrite:  quantize(concat(x, y), s, z)    ->    concat(quantize(x, s, z), quantize(y, s, z))

    Requires: one scale and one zero point; nothing else reads the joined numbers.
    """
    joined = copy.only(node.inputs[0], "concat")
    if joined is None or _parameters(copy, node) is None:
        return None
    quantized = [
        copy.new("quantize_linear", (name, *node.inputs[1:]), f"{name}.codes", axis=1)
        for name in joined.inputs
    ]
    return copy.emit("concat", quantized, node.outputs, **joined.attribute_map)


@rewriting("quantize_linear")
def round_to_codes(copy: Copy, node: Node) -> Sequence[str] | None:
    """Rewrite:  quantize(x, s, z)    ->    u8(clip(round(x / s) + z, 0, 255))

    Requires: one scale and one zero point.
    """
    matched = _parameters(copy, node)
    if matched is None or copy.type_of(node.inputs[0]).dtype is not DType.F32:
        return None
    (quantized,) = node.outputs
    scale, zero = matched
    kind = copy.result(node).dtype
    held = copy.hold(np.asarray(scale), f"{quantized}.scale")
    steps = copy.new("div", (node.inputs[0], held), f"{quantized}.steps")
    whole = copy.new("round", (steps,), f"{quantized}.whole")
    if zero:
        shift = copy.hold(np.asarray(zero, np.float32), f"{quantized}.shift")
        whole = copy.new("add", (whole, shift), f"{quantized}.shifted")
    low, high = float(kind.lowest), float(kind.highest)
    inside = copy.new("clip", (whole,), f"{quantized}.inside", min=low, max=high)
    return copy.emit("cast", (inside,), node.outputs, to=kind)


@rewriting("dequantize_linear")
def number_rounded(copy: Copy, node: Node) -> Sequence[str] | None:
    """Rewrite:  dequantize(u8(clip(x + z, 0, 255)), s, z)    ->    clip(x, -z, 255 - z) * s

    Requires: x is whole; nothing else reads the codes.
    """
    made = copy.only(node.inputs[0], "cast")
    matched = _parameters(copy, node)
    if made is None or matched is None:
        return None
    inside = copy.producer(made.inputs[0])
    if inside is None or inside.operator != "clip":
        return None
    scale, zero = matched
    wish = node.outputs[0]
    (numbers,) = made.inputs
    if zero:
        shifted = copy.producer(inside.inputs[0])
        if shifted is None or shifted.operator != "add":
            return None
        kind = copy.type_of(node.inputs[0]).dtype
        low, high = float(kind.lowest - zero), float(kind.highest - zero)
        numbers = copy.new("clip", shifted.inputs[:1], f"{wish}.inside", min=low, max=high)
    return copy.emit("mul", (numbers, copy.hold(np.asarray(scale), f"{wish}.scale")), node.outputs)


@rewriting("clip")
def clip_once(copy: Copy, node: Node) -> Sequence[str] | None:
    """Rewrite:  clip(round(relu(x) / s), 0, high)    ->    clip(round(x / s), 0, high)

    Requires: s is positive; nothing else reads the numbers between.
    """
    low = node.attribute_map["min"]
    whole = copy.only(node.inputs[0], "round")
    steps = copy.only(whole.inputs[0], "div") if whole is not None else None
    if steps is None or not isinstance(low, float) or low < 0.0:
        return None
    positive, scale = copy.only(steps.inputs[0], "relu"), _one_number(copy, steps.inputs[1])
    if positive is None or not scale > 0.0:
        return None
    wish = node.outputs[0]
    again = copy.new("div", (positive.inputs[0], steps.inputs[1]), f"{wish}.steps")
    rounded = copy.new("round", (again,), f"{wish}.whole")
    return copy.emit("clip", (rounded,), node.outputs, **node.attribute_map)


@rewriting("round")
def round_in_steps(copy: Copy, node: Node) -> Sequence[str] | None:
    """Products and sums before a rounding are in steps of the codes.

    Rewrite:  round((x * a + b) / s)    ->    round(x * (a / s) + b / s)
    Requires: s is positive; nothing else reads the numbers between.
    """
    steps = copy.only(node.inputs[0], "div")
    if steps is None or copy.result(node).dtype is not DType.F32:
        return None
    scale = _one_number(copy, steps.inputs[1])
    emit = _scaled(copy, steps.inputs[0], 1.0 / scale) if scale > 0.0 else None
    if emit is None:
        return None
    return copy.emit("round", (emit(f"{node.outputs[0]}.steps"),), node.outputs)


def _one_number(copy: Copy, name: str) -> float:
    """A constant of one element; 0 for other tensors."""
    array = copy.constant(name)
    return float(array.reshape(())[()]) if array is not None and array.size == 1 else 0.0


_Emit = Callable[[str], str]


def _scaled(copy: Copy, name: str, factor: float) -> _Emit | None:
    """What writes a tensor times a positive factor without a multiplication more; None if nothing
    does.
    """
    array, made = copy.constant(name), copy.producer(name)
    if array is not None and array.dtype == np.float32:
        times = (array.astype(np.float64) * factor).astype(np.float32)
        return lambda wish: copy.hold(times, f"{wish}.constant")
    if made is None or copy.type_of(name).dtype is not DType.F32:
        return None
    if made.operator == "dequantize_linear" and _parameters(copy, made) is not None:
        scale = _scaled(copy, made.inputs[1], factor)
        quantized, _, *zero = made.inputs
        return scale and (
            lambda wish: copy.new(
                "dequantize_linear", (quantized, scale(wish), *zero), wish, **made.attribute_map
            )
        )
    if not copy.only_use(name):
        return None
    if made.operator == "relu":
        inner = _scaled(copy, made.inputs[0], factor)
        return inner and (lambda wish: copy.new("relu", (inner(f"{wish}.inner"),), wish))
    operand = constant_operand(copy, made)
    if made.operator == "mul" and operand is not None:
        source, numbers = operand
        times = (numbers.astype(np.float64) * factor).astype(np.float32)
        return lambda wish: copy.new("mul", (source, copy.hold(times, f"{wish}.constant")), wish)
    if made.operator != "add":
        return None
    sides = [_scaled(copy, each, factor) for each in made.inputs]
    left, right = sides
    if left is None or right is None:
        return None
    return lambda wish: copy.new("add", (left(f"{wish}.left"), right(f"{wish}.right")), wish)
