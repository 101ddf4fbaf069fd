"""Which workloads are alike: the same kinds of stages in the same order, and about as much work.

Source:  the tags of Ansor's released code, which round the logarithm of the work to base 1.618.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from tensorwright.expr import Apply, Compute, Value, children, topological_order
from tensorwright.ops import work
from tensorwright.tune.task import Workload

_WORK_BASE = 1.618


def structure_of(workload: Workload) -> str:
    """The sequence of the workload's stages as text (axes, reduction, operations), and its work.

    Workloads of equal structure reach about the same operations per second.
    """
    stages = topological_order(*workload.outputs)
    parts = [_stage_text(stage) for stage in stages if isinstance(stage, Compute)]
    size = int(math.log(operations_of(workload) + 1, _WORK_BASE))
    return "; ".join([*parts, str(size)])


def operations_of(workload: Workload) -> int:
    """The operations of one call; 0 for a workload that only moves data."""
    return work(workload.outputs)


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
