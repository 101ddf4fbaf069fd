"""Curves: how one quantity of the loops around a buffer's accesses depends on another.

A loop gives each buffer a point (x, y), both logarithms to base 2 of `count`, `reuse`, `topdown` or
`bottomup` of `loops/loop_arrays.py`.  A curve is sampled at x = 0, 1, ..., samples - 1:

    j(i) = the last point with x_j <= i;    features of sample i: y_j(i), i - x_j(i)

so that their number depends on the samples, and not on the loops: one model serves all operators.
A relation `count/reuse` is sampled both ways, reuse over count and count over reuse;
`count>bottomup` only one way, bottomup over count.  Rows are statements, five buffers of each: the
stored one, then those with most bytes.

    curve         as published in code: one sample, at 0, and each quantity sorted on its own, with
                  a point 0 put before them all; the curves of bottomup are never looked at
    curve-fix     the same with 30 samples
    curve-paired  the points are sorted by x and, where x is equal, by y, each kept whole; before
                  them all is the point inside all loops, where count, reuse and bottomup are 1 and
                  topdown is that of the innermost loop; count/bottomup is among the relations

Sorting each on its own breaks what a point says: going inwards count falls while topdown rises, so
sorted counts and sorted topdowns are of different loops.

Source:   Chen et al., AutoTVM, NeurIPS 2018, section 4 and appendix; tvm, src/autotvm/
          touch_extractor.cc, whose `bool sample_n` made one sample of twenty until 2018; the fix
          and the trials with relations: D. Zheng, Learning "Learning to Optimize Tensor Programs",
          2018 (dan-zheng/tvm, branch cs590-experiments).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tensorwright.tuning.features.cell_tables import Features
from tensorwright.tuning.features.loops.loop_arrays import LoopArrays
from tensorwright.tuning.features.names import BUFFERS

QUANTITIES = ("count", "reuse", "topdown", "bottomup")
PUBLISHED = ("count/reuse", "count/topdown")
PAIRED = ("count/reuse", "count/topdown", "count/bottomup")
SAMPLES = 30

_SLACK = np.float32(1e-6)


@dataclass(frozen=True, slots=True)
class CurveSettings:
    """What is sampled.

    relations  pairs of quantities (x, y), each sampled one way     samples   of each relation
    is_paired  whether points are sorted whole
    """

    relations: tuple[tuple[str, str], ...]
    samples: int = SAMPLES
    is_paired: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Their names, in order."""
        return tuple(
            f"buffer{buffer}_{y}_over_{x}_{sample}_{part}"
            for buffer in range(BUFFERS)
            for x, y in self.relations
            for sample in range(self.samples)
            for part in ("y", "distance")
        )


def relation_curves(loops: LoopArrays, settings: CurveSettings) -> Features:
    """(statements, columns, n), the columns in the order of `CurveSettings.columns`."""
    points = _points(loops, is_paired=settings.is_paired)
    if not settings.is_paired:
        points = {name: np.sort(values, axis=2) for name, values in points.items()}
    found = [
        _sampled(*_whole(points[x], points[y]), settings.samples)
        if settings.is_paired
        else _sampled(points[x], points[y], settings.samples)
        for x, y in settings.relations
    ]
    is_buffer = (loops.nbytes > 0)[:, :, None, None, None]
    stacked = np.stack(found, axis=2) * is_buffer
    return stacked.reshape(len(stacked), -1, stacked.shape[-1])


def _points(loops: LoopArrays, *, is_paired: bool) -> Mapping[str, Features]:
    """The quantities of each buffer, (statements, BUFFERS, 1 + LOOPS, n): the point that is put
    before the loops, then the loops, infinite where there is none.
    """
    is_there = loops.is_there[:, None]
    own = {
        "count": loops.count,
        "reuse": loops.reuse,
        "topdown": np.broadcast_to(loops.topdown[:, None], loops.count.shape),
        "bottomup": np.broadcast_to(loops.bottomup[:, None], loops.count.shape),
    }
    found: dict[str, Features] = {}
    for name, values in own.items():
        logs = np.where(is_there, np.log2(np.maximum(values, 1)), np.inf)
        start = np.zeros_like(logs[:, :, :1])
        if is_paired and name == "topdown":
            innermost = np.log2(np.maximum(loops.topdown.max(axis=1), 1))
            start = start + innermost[:, None, None]
        found[name] = np.concatenate([start, logs], axis=2)
    return found


def _whole(x: Features, y: Features) -> tuple[Features, Features]:
    """Points sorted by x and, where x is equal, by y."""
    order = np.argsort(y, axis=2, kind="stable")
    x, y = (np.take_along_axis(each, order, axis=2) for each in (x, y))
    order = np.argsort(x, axis=2, kind="stable")
    return np.take_along_axis(x, order, axis=2), np.take_along_axis(y, order, axis=2)


def _sampled(x: Features, y: Features, samples: int) -> Features:
    """(statements, BUFFERS, points, n) each -> (statements, BUFFERS, samples, 2, n)."""
    statements, buffers, points, count = x.shape
    found = np.empty((statements, buffers, samples, 2, count), np.float32)
    at = np.arange(samples, dtype=np.float32)[:, None]
    reached = at + _SLACK
    height, start = found[:, :, :, 0], found[:, :, :, 1]
    height[...] = y[:, :, :1]
    start[...] = x[:, :, :1]
    for point in range(1, points):
        own, its = x[:, :, point, None], y[:, :, point, None]
        is_reached = own < reached
        np.copyto(height, its, where=is_reached)
        np.copyto(start, own, where=is_reached)
    np.subtract(at, start, out=start)
    return found
