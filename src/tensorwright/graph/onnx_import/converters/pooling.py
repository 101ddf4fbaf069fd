"""Pooling, and its reverse."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np

from tensorwright.graph.onnx_import.call import Call, Results, Table
from tensorwright.graph.onnx_import.converters.windows import (
    Window,
    padded_window,
    per_dimension,
    window_of,
)
from tensorwright.graph.onnx_import.counterparts import MAX_POOL, POOLS, Counterpart


def _pool(counterpart: Counterpart, call: Call) -> Results:
    window = window_of(call, call.integers("kernel_shape"))
    return counterpart.convert(call, kernel=window.kernel, **window.attributes)


def _max_pool(counterpart: Counterpart, call: Call) -> Results:
    if not call.wants(1):
        lowest = float(call.type_at(0).dtype.lowest)
        x, window = padded_window(call, call.integers("kernel_shape"), lowest)
        alone = replace(call, operands=(x,))
        return counterpart.convert(alone, kernel=window.kernel, **window.attributes)
    pooled = _pool(counterpart, call)
    window = window_of(call, call.integers("kernel_shape"))
    return (*pooled, _places_of_maxima(call, window, call.type_of(pooled[0]).extents[2:]))


def _places_of_maxima(call: Call, window: Window, slots: tuple[int, ...]) -> str:
    """Where the first maximum of each window is, counted through the whole input in its order."""
    shape = call.shape(0)
    rank = len(slots)
    call.check_iterations(math.prod(window.kernel))
    call.check_elements(math.prod(slots) * math.prod(shape[:2]))
    begins = window.pads[:rank]
    sizes = [  # of the input with its padding, as far as windows reach
        (n - 1) * stride + (k - 1) * dilation + 1
        for n, stride, k, dilation in zip(
            slots, window.strides, window.kernel, window.dilations, strict=True
        )
    ]
    ends = [size - n - begin for size, n, begin in zip(sizes, shape[2:], begins, strict=True)]
    lowest = call.type_at(0).dtype.lowest
    x = call.add("pad", call.tensor(0), pads=(0, 0, *begins, 0, 0, *ends), value=float(lowest))
    offsets, taps = [], []
    for tap in product(*map(range, window.kernel)):
        starts = tuple(k * dilation for k, dilation in zip(tap, window.dilations, strict=True))
        stops = tuple(
            start + (n - 1) * stride + 1
            for start, n, stride in zip(starts, slots, window.strides, strict=True)
        )
        axes = tuple(range(2, 2 + rank))
        taps.append(
            call.add("slice", x, starts=starts, ends=stops, axes=axes, steps=window.strides)
        )
        offsets.append(starts)
    chosen = call.add("argmax", call.stack(taps, 2 + rank), axis=2 + rank, keepdims=False)
    order = range(rank) if not call.flag("storage_order", default=False) else range(rank)[::-1]
    steps = [0] * rank
    step = 1
    for axis in reversed(order):
        steps[axis], step = step, step * shape[2 + axis]
    planes = np.arange(math.prod(shape[:2])).reshape(*shape[:2], *(1,) * rank) * step
    for axis, n in enumerate(slots):
        firsts = np.arange(n) * window.strides[axis] - begins[axis]
        planes = planes + (firsts * steps[axis]).reshape(-1, *(1,) * (rank - 1 - axis))
    places = call.add("gather", np.array(offsets, np.int64) @ np.array(steps), chosen, axis=0)
    return call.add("add", places, planes)


def _max_unpool(call: Call) -> Results:
    """Maxima at the places where they were, zeros elsewhere."""
    shape = call.shape(0)
    kernel = call.integers("kernel_shape")
    rank = len(kernel)
    if rank != len(shape) - 2:
        raise call.unsupported(f"a window of {rank} dimensions does not fit data of {shape}")
    strides, pads = per_dimension(call, "strides", rank, 1), call.integers("pads", (0,) * 2 * rank)
    spatial = (
        (n - 1) * stride - begin - end + k
        for n, stride, begin, end, k in zip(
            shape[2:], strides, pads[:rank], pads[rank:], kernel, strict=True
        )
    )
    inferred = (*shape[:2], *spatial)
    wanted = call.ints(2, "output_shape") if call.has(2) else inferred
    ends = tuple(large - own for large, own in zip(wanted, inferred, strict=True))
    if min(ends) < 0 or min(inferred) < 0:
        raise call.unsupported(f"its output_shape {wanted} is less than {inferred}")
    count = (math.prod(shape),)
    x, places = (call.add("reshape", call.tensor(at), shape=count) for at in range(2))
    dtype = call.type_at(0).dtype
    zeros = call.add("full", shape=(math.prod(inferred),), value=0.0, dtype=dtype)
    spread = call.add("scatter_elements", zeros, places, x, axis=0, reduction="none")
    image = call.add("reshape", spread, shape=inferred)
    if any(ends):
        image = call.add("pad", image, pads=(*(0,) * len(ends), *ends))
    return (image,)


POOLING: Table = (
    *((each.theirs, partial(_pool, each)) for each in POOLS),
    (MAX_POOL.theirs, partial(_max_pool, MAX_POOL)),
    ("MaxUnpool", _max_unpool),
)
