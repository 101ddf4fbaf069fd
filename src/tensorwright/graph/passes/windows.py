"""Windows take over the padding, and large maxima are computed one dimension after the other."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.passes.rebuild import Copy, rewrite

_LEAST_WINDOW = 25  # elements
_LEAST_GAIN = 2


def fold_pads(graph: Graph) -> tuple[Graph, int]:
    """Rewrite:  conv(pad(x, p), w, pads=q)    ->    conv(x, w, pads=p+q)

    The same for average_pool, which then counts the padding; it must not have padding of its own or
    round up. Requires: the pad is constant zero, of spatial dimensions only, and not negative.
    """

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        if node.operator not in ("conv", "average_pool"):
            return None
        before = copy.producer(node.inputs[0])
        if before is None or before.operator != "pad":
            return None
        attributes = before.attribute_map
        pads = before.ints("pads")
        rank = len(pads) // 2
        begins, ends = pads[:rank], pads[rank:]
        if attributes["mode"] != "constant" or attributes["value"] != 0 or min(pads) < 0:
            return None
        if any((*begins[:2], *ends[:2])):
            return None
        moved = (*begins[2:], *ends[2:])
        own = node.ints("pads") or (0,) * len(moved)
        both = tuple(a + b for a, b in zip(moved, own, strict=True))
        changes: dict[str, bool] = {}
        if node.operator == "average_pool":
            if any(own) or node.attribute_map["ceil_mode"]:
                return None
            changes["count_include_pad"] = True
        full = {**node.attribute_map, **changes, "pads": both}
        return copy.emit(node.operator, (before.inputs[0], *node.inputs[1:]), node.outputs, **full)

    return rewrite(graph, rule)


def separate_large_pools(graph: Graph) -> tuple[Graph, int]:
    """Rewrite:  max_pool(x, 13x13)    ->    max_pool(max_pool(x, 13x1), 1x13)

    26 comparisons for an element instead of 169. Requires: at least half of the comparisons vanish,
    counting those that steps along the later dimension waste.
    """

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        kernel = node.ints("kernel") if node.operator == "max_pool" else ()
        if prod(kernel) < _LEAST_WINDOW:
            return None
        rank = len(kernel)
        last = max(at for at in range(rank) if kernel[at] > 1)
        ones, zeros = (1,) * rank, (0,) * rank
        strides, dilations = node.ints("strides") or ones, node.ints("dilations") or ones
        pads = node.ints("pads") or zeros + zeros
        separate = prod(kernel[:last]) * strides[last] + kernel[last]
        if prod(kernel) < _LEAST_GAIN * separate:
            return None

        def part(x: str, keep: range, outputs: tuple[str, ...]) -> tuple[str, ...]:
            """The pool along some dimensions alone."""

            def kept(values: tuple[int, ...], neutral: int) -> tuple[int, ...]:
                return tuple(v if at % rank in keep else neutral for at, v in enumerate(values))

            changes = {
                "kernel": kept(kernel, 1),
                "strides": kept(strides, 1),
                "dilations": kept(dilations, 1),
                "pads": kept(pads, 0),
            }
            return copy.emit("max_pool", (x,), outputs, **{**node.attribute_map, **changes})

        wish = copy.free(f"{node.outputs[0]}.columns")
        (columns,) = part(node.inputs[0], range(last), (wish,))
        return part(columns, range(last, rank), node.outputs)

    return rewrite(graph, rule)
