"""Graphs that nodes hold. Read `operators.py` first: a branch and a loop."""

from tensorwright.graph.nested.captured import simplify_nested
from tensorwright.graph.nested.operators import (
    BRANCH,
    CONDITION,
    COUNT,
    LOOP,
    NESTING,
    LoopForm,
    infer_nested,
    map_nested,
    own_inputs,
    require_alone,
)

__all__ = [
    "BRANCH",
    "CONDITION",
    "COUNT",
    "LOOP",
    "NESTING",
    "LoopForm",
    "infer_nested",
    "map_nested",
    "own_inputs",
    "require_alone",
    "simplify_nested",
]
