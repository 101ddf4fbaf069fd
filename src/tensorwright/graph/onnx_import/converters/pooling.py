"""Pooling."""

from __future__ import annotations

from functools import partial

from tensorwright.graph.onnx_import.call import Call, Results, Table
from tensorwright.graph.onnx_import.converters.windows import window_of
from tensorwright.graph.onnx_import.counterparts import POOLS, Counterpart


def _pool(counterpart: Counterpart, call: Call) -> Results:
    window = window_of(call, call.integers("kernel_shape"))
    return counterpart.convert(call, kernel=window.kernel, **window.attributes)


POOLING: Table = tuple((each.theirs, partial(_pool, each)) for each in POOLS)
