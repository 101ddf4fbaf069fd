"""Simplifications of graphs, one per file; `rebuild.py` says how they are written.

Adding one: a file with a function from a graph to a graph and a count, and its line in `PASSES`.
The pipeline runs `composites.py` once before all of these, and the `TARGET_PASSES` of a kind of
machine once after them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tensorwright.base import ByKind, InternalError, Target, TargetKind, dump, knobs, of_kind
from tensorwright.graph.graph import Graph
from tensorwright.graph.infer import verify
from tensorwright.graph.nested import map_nested, simplify_nested
from tensorwright.graph.partition import Price
from tensorwright.graph.passes.affine import (
    absorb_scale, absorb_shift, merge_affine, scale_data_for_filters, sum_constants,
)
from tensorwright.graph.passes.kept_codes import round_once
from tensorwright.graph.passes.composites import (
    compute_float16_as_float32, lower_batch_norm, lower_group_norm, recognise_attention,
    share_heads,
    recognise_mish,
)
from tensorwright.graph.passes.identities import (
    FoldedConstants, fold_constants, merge_common_subexpressions, remove_dead_code,
    remove_identities,
)
from tensorwright.graph.passes.movement import (
    fold_pads, merge_reshapes, merge_transposes, move_whole_rows, reshape_joined,
    separate_large_pools, slice_for_gather, transpose_apart, turn_weights,
)
from tensorwright.graph.passes.precision import round_operands
from tensorwright.graph.passes.quantized import (
    keep_codes, keep_rounded, lower_quantized, multiply_blocks, multiply_quantized, round_in_floats,
)
from tensorwright.graph.passes.rebuild import Pass

PASSES: tuple[Pass, ...] = (
    remove_dead_code,
    remove_identities,
    keep_codes,
    multiply_quantized,
    fold_constants,
    merge_reshapes,
    merge_transposes,
    turn_weights,
    transpose_apart,
    slice_for_gather,
    move_whole_rows,
    reshape_joined,
    recognise_mish,
    share_heads,
    round_in_floats,
    keep_rounded,
    lower_batch_norm,
    lower_group_norm,
    merge_affine,
    absorb_scale,
    absorb_shift,
    scale_data_for_filters,
    sum_constants,
    fold_pads,
    separate_large_pools,
    merge_common_subexpressions,
)
TARGET_PASSES: ByKind[Callable[..., Graph]] = {
    TargetKind.CPU: (lower_quantized, round_once, multiply_blocks, recognise_attention),
    TargetKind.GPU: (),
}
"""The passes that depend on the target; each returns the graph itself where it changes nothing."""
_MOST_ROUNDS = 100


def simplify(graph: Graph, folded: FoldedConstants | None = None) -> Graph:
    """The same function with fewer nodes: all passes, until none changes anything; the knob `dump`
    shows each change and how often each pass made one, the knob `verify` checks them.

    folded   constants made in other graphs, which are not computed again

    Raises:  InternalError if the passes go on changing the graph.
    """
    check = knobs.VERIFY.get()
    counts: Counter[str] = Counter()
    for round_ in range(1, _MOST_ROUNDS + 1):
        before = counts.total()
        for each in PASSES:
            graph, count = fold_constants(graph, folded) if each is fold_constants else each(graph)
            if count:
                counts[each.__name__] += count
                graph, _ = remove_dead_code(graph)  # what it replaced
                dump("graph", f"{round_}-{each.__name__}", graph.__str__)
                if check:
                    verify(graph)
        if counts.total() == before:
            names = [each.__name__ for each in PASSES if counts[each.__name__]]
            rows = [f"{round_} rounds of {len(PASSES)} passes"]
            rows += [f"  {name} {counts[name]}" for name in names]
            dump("rules", "simplify", "\n".join(rows).__str__)
            graph = simplify_nested(graph, lambda nested: simplify(nested, folded))
            return remove_dead_code(graph)[0]
    raise InternalError(
        stage="simplify", where=f"graph {graph.name}", reason="the passes do not come to an end"
    )


def run_target_passes(graph: Graph, target: Target, price: Price | None = None) -> Graph:
    """A simplified graph after the passes of the target's kind, simplified again.

    price   of kernels; if None, nothing is decided by predicted times
    """
    lowered = graph = map_nested(graph, lambda one: run_target_passes(one, target, price))
    for each in of_kind(TARGET_PASSES, target, "passes of graphs"):
        is_priced = each is lower_quantized
        lowered = each(lowered, target, price) if is_priced else each(lowered, target)
    return graph if lowered is graph else simplify(lowered)
