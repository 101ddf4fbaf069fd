"""The derivation rules that come with the package, one idea a file, in the order of asking."""

from tensorwright.tune.derive.rule import SketchRule
from tensorwright.tune.derive.rules.cache_write import AddCacheWrite
from tensorwright.tune.derive.rules.constants import SimplifyConstants
from tensorwright.tune.derive.rules.inline import AlwaysInline
from tensorwright.tune.derive.rules.rfactor import FactorReduction
from tensorwright.tune.derive.rules.skip import Skip
from tensorwright.tune.derive.rules.tiling import MultiLevelTiling, MultiLevelTilingWithFusion

SKETCH_RULES: tuple[SketchRule, ...] = (
    AlwaysInline(),
    SimplifyConstants(),
    FactorReduction(),
    AddCacheWrite(),
    MultiLevelTilingWithFusion(),
    MultiLevelTiling(),
    Skip(),
)

__all__ = [
    "SKETCH_RULES",
    "AddCacheWrite",
    "AlwaysInline",
    "FactorReduction",
    "MultiLevelTiling",
    "MultiLevelTilingWithFusion",
    "SimplifyConstants",
    "Skip",
]
