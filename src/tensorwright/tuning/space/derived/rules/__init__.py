"""The sketch generators that come with the package, in the order of asking."""

from tensorwright.base import ByKind, TargetKind
from tensorwright.tuning.space.derived.derivation import SketchRule
from tensorwright.tuning.space.derived.rules.batched_winograd import BatchedWinograd
from tensorwright.tuning.space.derived.rules.cross_threads import (
    CrossThreadReduction, FactorReduction,
)
from tensorwright.tuning.space.derived.rules.matrix_tiling import MatrixTiling
from tensorwright.tuning.space.derived.rules.thread_tiling import (
    SplitReductionOverBlocks, ThreadTiling,
)
from tensorwright.tuning.space.derived.rules.tiling import (
    AddCacheWrite, AlwaysInline, FoldConstants, MultiLevelTiling, MultiLevelTilingWithFusion,
    SimplifyConstants, Skip,
)
from tensorwright.tuning.space.derived.rules.window_tiling import (
    WindowTiling,
)

SKETCH_RULES: tuple[SketchRule, ...] = (
    FoldConstants(),
    AlwaysInline(),
    SimplifyConstants(),
    FactorReduction(),
    AddCacheWrite(),
    MultiLevelTilingWithFusion(),
    MultiLevelTiling(),
    Skip(),
)

GPU_RULES: tuple[SketchRule, ...] = (
    FoldConstants(),
    AlwaysInline(),
    SplitReductionOverBlocks(),
    CrossThreadReduction(),
    MatrixTiling(),
    WindowTiling(),
    ThreadTiling(),
    Skip(leaves_made=False),
)

WINOGRAD_RULES: tuple[SketchRule, ...] = (
    FoldConstants(),
    AlwaysInline(),
    BatchedWinograd(),
    MatrixTiling(),
    Skip(),
)
"""Those for graphics processors that compute convolutions by another algorithm."""

GENERATORS: ByKind[SketchRule] = {TargetKind.CPU: SKETCH_RULES, TargetKind.GPU: GPU_RULES}
