"""The sketch generators that come with the package, in the order of asking."""

from tensorwright.base import ByKind, TargetKind
from tensorwright.tuning.space.derived.rule import SketchRule
from tensorwright.tuning.space.derived.rules.constants import FoldConstants, SimplifyConstants
from tensorwright.tuning.space.derived.rules.placement import AddCacheWrite, AlwaysInline, Skip
from tensorwright.tuning.space.derived.rules.rfactor import FactorReduction
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

GENERATORS: ByKind[SketchRule] = {TargetKind.CPU: SKETCH_RULES, TargetKind.GPU: ()}

__all__ = [
    "GENERATORS",
    "SKETCH_RULES",
    "AddCacheWrite",
    "AlwaysInline",
    "FactorReduction",
    "FoldConstants",
    "MultiLevelTiling",
    "MultiLevelTilingWithFusion",
    "SimplifyConstants",
    "Skip",
]
