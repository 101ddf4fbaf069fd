"""Sketches derived by rules, as Ansor does it: from the last stage of a program to the first.

Read `derivation.py` first (what a rule sees), then `rule.py`, `engine.py`, the files of `rules/`
and `annotate.py`.
"""

import tensorwright.tune.space  # noqa: F401  its last module imports this package: it goes first
from tensorwright.tune.derive.derivation import Derivation, TiledStage
from tensorwright.tune.derive.engine import derive
from tensorwright.tune.derive.predicates import (
    has_data_reuse,
    has_fusable_consumer,
    has_more_reduction_parallelism,
    is_strict_inlinable,
)
from tensorwright.tune.derive.rule import (
    FunctionRule,
    SketchRule,
    Verdict,
    register_sketch_rule,
    sketch_rule,
    unregister_sketch_rule,
)
from tensorwright.tune.derive.rules import SKETCH_RULES
from tensorwright.tune.derive.sketches import derived_sketches

__all__ = [
    "SKETCH_RULES",
    "Derivation",
    "FunctionRule",
    "SketchRule",
    "TiledStage",
    "Verdict",
    "derive",
    "derived_sketches",
    "has_data_reuse",
    "has_fusable_consumer",
    "has_more_reduction_parallelism",
    "is_strict_inlinable",
    "register_sketch_rule",
    "sketch_rule",
    "unregister_sketch_rule",
]
