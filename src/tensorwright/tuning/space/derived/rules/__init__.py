"""The sketch generators that come with the package, in the order of asking."""

from tensorwright.base import ByKind, TargetKind
from tensorwright.tuning.space.derived.derivation import SketchRule
from tensorwright.tuning.space.derived.rules.batched_winograd import use_batched_winograd
from tensorwright.tuning.space.derived.rules.cross_threads import (
    factor_reduction, reduce_across_threads,
)
from tensorwright.tuning.space.derived.rules.matrix_tiling import tile_matrices, tile_windows
from tensorwright.tuning.space.derived.rules.thread_tiling import split_over_blocks, tile_in_threads
from tensorwright.tuning.space.derived.rules.tiling import (
    add_cache_write, always_inline, fold_constants, simplify_constants, skip, skip_given, tile,
    tile_fused,
)

SKETCH_RULES = (
    *(fold_constants, always_inline, simplify_constants, factor_reduction),
    *(add_cache_write, tile_fused, tile, skip),
)

GPU_RULES = (
    *(fold_constants, always_inline, split_over_blocks, reduce_across_threads),
    *(tile_matrices, tile_windows, tile_in_threads, skip_given),
)

WINOGRAD_RULES = (fold_constants, always_inline, use_batched_winograd, tile_matrices, skip)
"""Those for graphics processors that compute convolutions by another algorithm."""

GENERATORS: ByKind[SketchRule] = {TargetKind.CPU: SKETCH_RULES, TargetKind.GPU: GPU_RULES}
