"""Which workloads are alike: the same kinds of stages in the same order, and about as much work.

Source:  the tags of Ansor's released code, which round the logarithm of the work to base 1.618.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

from tensorwright.expr import Apply, Compute, Value, children, topological_order
from tensorwright.ops import work

_WORK_BASE = 1.618


@lru_cache(maxsize=4096)
def structure_of(outputs: tuple[Compute, ...]) -> str:
    """The sequence of a program's stages as text (axes, reduction, operations), and its work.

    Programs of equal structure reach about the same operations per second.
    """
    stages = topological_order(*outputs)
    parts = [_stage_text(stage) for stage in stages if isinstance(stage, Compute)]
    size = int(math.log(operations_of(outputs) + 1, _WORK_BASE))
    return "; ".join([*parts, str(size)])


@lru_cache(maxsize=4096)
def operations_of(outputs: tuple[Compute, ...]) -> int:
    """The operations of one call; 0 for a program that only moves data."""
    return work(outputs)


def _stage_text(stage: Compute) -> str:
    reduction = stage.reduction.combiner.name if stage.reduction is not None else "-"
    operations = " ".join(_operations(stage.body))
    return f"{len(stage.axes)} {len(stage.reduce_axes)} {reduction} {operations}"


def _operations(value: Value) -> Iterator[str]:
    if isinstance(value, Apply):
        yield value.fn.name
    else:
        yield type(value).__name__
    for child in children(value):
        yield from _operations(child)
