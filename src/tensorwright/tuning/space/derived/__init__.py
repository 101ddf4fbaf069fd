"""Sketches derived by generators, as Ansor does it: from the last stage of a program to the first.

Read `derivation.py` first (what a generator sees), then `engine.py` and the files of `rules/`.
"""

import tensorwright.tuning.space
from tensorwright.tuning.space.derived.derivation import (
    Derivation, SketchRule, Verdict, has_data_reuse, has_fusable_consumer,
    has_more_reduction_parallelism, is_strict_inlinable, register_sketch_rule, sketch_rule,
    unregister_sketch_rule,
)
from tensorwright.tuning.space.derived.engine import (
    batched_winograd_sketches, derive, derived_sketches, tiled_sketches,
)
from tensorwright.tuning.space.derived.rules import GENERATORS, SKETCH_RULES
