"""Products of rounded operands; their sums, and all else, stay f32."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

import numpy as np

from tensorwright.base import CpuTarget, DType, Target, UsageError, cpu_target, unknown_name
from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.infer import operator_of
from tensorwright.graph.nested import map_nested
from tensorwright.graph.passes.composites import recognise_attention
from tensorwright.graph.passes.identities import remove_dead_code
from tensorwright.graph.passes.rebuild import Copy, rewrite
from tensorwright.ops import Movement

_ORDERS, _UNKNOWN = (Movement.RESHAPE, Movement.REORDER), "no product has this name"


def round_operands(graph: Graph, target: Target, precision: str, keep: Sequence[str]) -> Graph:
    """A simplified graph whose products have rounded operands.

    Rewrite:  matmul(x, w)    ->    matmul(f32(bf16(x)), f32(bf16(w)))
    Constants are kept in bf16, and kernels widen them, but for small ones. Other operands are
    rounded where they are made, before their elements are put into another order.

    precision   "f32" changes nothing
    keep        results of products that stay as they are, or patterns of them
    Raises:  UsageError for a precision that the target lacks, and for the name of no product.
    """
    has = ("f32", "bf16") if isinstance(target, CpuTarget) else ("f32",)
    if precision not in has:
        reason = f"{target} has products of {' and '.join(has)} alone"
        raise unknown_name("compile", f"precision {precision}", reason, precision, has)
    patterns = (keep,) if isinstance(keep, str) else tuple(keep)
    if precision == "f32":
        if patterns:
            reason, remedy = "nothing is rounded", 'give precision="bf16", too'
            where = f"keep {patterns[0]}"
            raise UsageError(stage="compile", where=where, reason=reason, remedy=remedy)
        return graph
    names: list[str] = []
    result = _rounded_graph(graph, target, patterns, names)
    for each in patterns:
        if not any(fnmatchcase(name, each) for name in names):
            raise unknown_name("compile", f"keep {each}", _UNKNOWN, each, names)
    return result


def _rounded_graph(graph: Graph, target: Target, keep: Sequence[str], names: list[str]) -> Graph:
    graph = map_nested(graph, lambda nested: _rounded_graph(nested, target, keep, names))
    rounded: dict[str, str] = {}
    machine = cpu_target(target)
    wide_bytes = 0 if machine.is_fast(DType.BF16) else machine.l1_bytes

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        own = operator_of(node)
        count = own.multiplied
        types = [copy.type_of(name) for name in node.inputs[:count]]
        if not types or any(each.dtype is not DType.F32 for each in types):
            return None
        if own.is_convolution and node.integer("groups") > 1 and types[1].shape[1] == 1:
            return None  # each channel by itself: nothing is gained
        names.append(node.outputs[0])
        if any(fnmatchcase(node.outputs[0], each) for each in keep):
            return None
        inputs = [_rounded(copy, name, rounded, wide_bytes) for name in node.inputs[:count]]
        inputs += node.inputs[count:]
        return copy.emit(node.operator, inputs, node.outputs, **node.attribute_map)

    attentive, _ = remove_dead_code(recognise_attention(graph, target))
    return remove_dead_code(rewrite(attentive, rule)[0])[0]


def _rounded(copy: Copy, name: str, rounded: dict[str, str], wide_bytes: int) -> str:
    """The numbers of a tensor, rounded.

    rounded     the names of what is rounded already
    wide_bytes  constants of at most so many bytes stay f32: widening them takes time and, out of
                the first cache, reading half of them saves none
    """
    if name in rounded:
        return rounded[name]
    array, made = copy.constant(name), copy.producer(name)
    is_order = made and (made.operator == "split" or operator_of(made).movement in _ORDERS)
    if made and is_order and all(map(copy.only_use, made.outputs)):
        source = _rounded(copy, made.inputs[0], rounded, wide_bytes)
        names = [copy.free(f"{each}.rounded") for each in made.outputs]
        results = copy.emit(made.operator, (source, *made.inputs[1:]), names, **made.attribute_map)
        rounded.update(zip(made.outputs, results, strict=True))
        return rounded[name]
    if array is not None and array.nbytes <= wide_bytes:
        few = array.astype(DType.BF16.numpy).astype(np.float32)
        rounded[name] = copy.hold(few, f"{name}.rounded")
        return rounded[name]
    if array is not None:
        short = copy.hold(array.astype(DType.BF16.numpy), f"{name}.bf16")
    else:
        short = copy.new("cast", (name,), f"{name}.bf16", to=DType.BF16)
    rounded[name] = copy.new("cast", (short,), f"{name}.rounded", to=DType.F32)
    return rounded[name]
