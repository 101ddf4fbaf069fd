"""Sketches derived by generators, as Ansor does it: from the last stage of a program to the first.

Read `derivation.py` first (what a generator sees), then `rule.py`, `engine.py`, the files of
`rules/` and `annotate.py`.
"""

import tensorwright.tuning.space  # noqa: F401  its last module imports this package: it goes first
from tensorwright.tuning.space.derived.derivation import Derivation
from tensorwright.tuning.space.derived.engine import (
    batched_winograd_sketches,
    derive,
    derived_sketches,
    tiled_sketches,
)
from tensorwright.tuning.space.derived.predicates import (
    has_data_reuse,
    has_fusable_consumer,
    has_more_reduction_parallelism,
    is_strict_inlinable,
)
from tensorwright.tuning.space.derived.rule import (
    SketchRule,
    Verdict,
    register_sketch_rule,
    sketch_rule,
    unregister_sketch_rule,
)
from tensorwright.tuning.space.derived.rules import GENERATORS, SKETCH_RULES

__all__ = [
    "GENERATORS",
    "SKETCH_RULES",
    "Derivation",
    "SketchRule",
    "Verdict",
    "batched_winograd_sketches",
    "derive",
    "derived_sketches",
    "has_data_reuse",
    "has_fusable_consumer",
    "has_more_reduction_parallelism",
    "is_strict_inlinable",
    "register_sketch_rule",
    "sketch_rule",
    "tiled_sketches",
    "unregister_sketch_rule",
]
