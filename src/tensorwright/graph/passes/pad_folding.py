"""Let a window do the padding itself."""

from __future__ import annotations

from collections.abc import Sequence

from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.passes.rebuild import Copy, rewrite


def fold_pads(graph: Graph) -> tuple[Graph, int]:
    """Rewrite:  conv(pad(x, p), w, pads=q)    ->    conv(x, w, pads=p+q)

    So too average_pool, which then counts the padding; it must not pad by itself nor round up.
    Requires: the pad is constant zero, of spatial dimensions only, and not negative.
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
