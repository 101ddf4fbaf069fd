"""The sketch generators that come with the package, in the order of asking."""

from tensorwright.base import ByKind, TargetKind
from tensorwright.tuning.space.derived.rule import SketchRule
from tensorwright.tuning.space.derived.rules.constants import FoldConstants, SimplifyConstants
from tensorwright.tuning.space.derived.rules.cross_threads import CrossThreadReduction
from tensorwright.tuning.space.derived.rules.placement import AddCacheWrite, AlwaysInline, Skip
from tensorwright.tuning.space.derived.rules.rfactor import FactorReduction
from tensorwright.tuning.space.derived.rules.split_blocks import SplitReductionOverBlocks
from tensorwright.tuning.space.derived.rules.streaming import Streaming, WaitForTile
from tensorwright.tuning.space.derived.rules.thread_tiling import (
    CacheThreadTile,
    ThreadTiling,
)
from tensorwright.tuning.space.derived.rules.tiling import (
    MultiLevelTiling,
    MultiLevelTilingWithFusion,
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
    CacheThreadTile(),
    ThreadTiling(),
    WaitForTile(),
    Streaming(),
)

GENERATORS: ByKind[SketchRule] = {TargetKind.CPU: SKETCH_RULES, TargetKind.GPU: GPU_RULES}

__all__ = [
    "GENERATORS",
    "GPU_RULES",
    "SKETCH_RULES",
    "AddCacheWrite",
    "AlwaysInline",
    "CacheThreadTile",
    "CrossThreadReduction",
    "FactorReduction",
    "FoldConstants",
    "MultiLevelTiling",
    "MultiLevelTilingWithFusion",
    "SimplifyConstants",
    "Skip",
    "SplitReductionOverBlocks",
    "Streaming",
    "ThreadTiling",
    "WaitForTile",
]
