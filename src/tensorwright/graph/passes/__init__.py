"""Simplifications of graphs, one per file; `rebuild.py` says how they are written.

Adding one: a file with a function from a graph to a graph and a count, and its line in `PASSES`.
The pipeline runs `composites.py` once before all of these, and the `TARGET_PASSES` of a kind of
machine once after them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tensorwright.base import ByKind, InternalError, Target, TargetKind, dump, knobs, of_kind
from tensorwright.graph.graph import Graph
from tensorwright.graph.infer import verify
from tensorwright.graph.nested import map_nested, simplify_nested
from tensorwright.graph.passes.affine import (
    absorb_scale, absorb_shift, merge_affine, scale_data_for_filters, sum_constants,
)
from tensorwright.graph.passes.composites import (
    compute_float16_as_float32, lower_batch_norm, lower_group_norm, recognise_attention,
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
from tensorwright.graph.passes.quantized import (
    lower_quantized, multiply_blocks, multiply_quantized, round_in_floats,
)
from tensorwright.graph.passes.rebuild import Pass

PASSES: tuple[Pass, ...] = (
    remove_dead_code,
    remove_identities,
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
    round_in_floats,
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
TARGET_PASSES: ByKind[Callable[[Graph, Any], Graph]] = {
    TargetKind.CPU: (lower_quantized, multiply_blocks, recognise_attention),
    TargetKind.GPU: (),
}
"""The passes that depend on the target; each returns the graph itself where it changes nothing."""
_MOST_ROUNDS = 100


@dataclass(frozen=True, slots=True)
class Simplification:
    """A simplified graph and how often each pass changed something."""

    graph: Graph
    counts: tuple[tuple[str, int], ...]
    rounds: int

    def describe(self) -> str:
        """One line for each pass that changed something."""
        rows = [f"  {name} {count}" for name, count in self.counts if count]
        return "\n".join([f"{self.rounds} rounds of {len(self.counts)} passes", *rows])

    def __str__(self) -> str:
        changes = ", ".join(f"{name} {count}" for name, count in self.counts if count)
        return f"{len(self.graph.nodes)} nodes after {self.rounds} rounds: {changes or 'no change'}"


def simplify_with_report(graph: Graph, folded: FoldedConstants | None = None) -> Simplification:
    """Run all passes until none changes anything; the knob `dump` shows each change, the knob
    `verify` checks it.

    folded   constants made in other graphs

    Raises:  InternalError if the passes go on changing the graph.
    """
    check = knobs.VERIFY.get()
    counts = {each.__name__: 0 for each in PASSES}
    for round_ in range(1, _MOST_ROUNDS + 1):
        before = dict(counts)
        for each in PASSES:
            graph, count = fold_constants(graph, folded) if each is fold_constants else each(graph)
            counts[each.__name__] += count
            if count:
                graph, _ = remove_dead_code(graph)  # what it replaced
                dump("graph", f"{round_}-{each.__name__}", graph.__str__)
                if check:
                    verify(graph)
        if counts == before:
            simplification = Simplification(graph, tuple(counts.items()), round_)
            dump("rules", "simplify", simplification.describe)
            graph = simplify_nested(graph, lambda nested: simplify(nested, folded))
            return replace(simplification, graph=remove_dead_code(graph)[0])
    raise InternalError(
        stage="simplify", where=f"graph {graph.name}", reason="the passes do not come to an end"
    )


def simplify(graph: Graph, folded: FoldedConstants | None = None) -> Graph:
    """The same function with fewer nodes: constants are folded, scales merged into weights.

    folded   constants made in other graphs, which are not computed again
    """
    return simplify_with_report(graph, folded).graph


def run_target_passes(graph: Graph, target: Target) -> Graph:
    """A simplified graph after the passes of the target's kind, simplified again."""
    lowered = graph = map_nested(graph, lambda one: run_target_passes(one, target))
    for each in of_kind(TARGET_PASSES, target, "passes of graphs"):
        lowered = each(lowered, target)
    return graph if lowered is graph else simplify(lowered)
