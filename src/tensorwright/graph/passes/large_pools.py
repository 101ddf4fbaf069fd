"""Take the maxima of large windows one dimension after the other."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.passes.rebuild import Copy, rewrite

_LEAST_WINDOW = 25  # elements
_LEAST_GAIN = 2


def separate_large_pools(graph: Graph) -> tuple[Graph, int]:
    """Rewrite:  max_pool(x, 13x13)    ->    max_pool(max_pool(x, 13x1), 1x13)

    26 comparisons for an element instead of 169. Requires: at least half of them go, those counted
    that steps of the later dimension make in vain.
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
