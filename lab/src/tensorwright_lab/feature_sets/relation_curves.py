"""Curves: how one quantity of the loops around a buffer's accesses depends on another.

A loop gives each buffer a point (x, y), both logarithms to base 2 of `count`, `reuse`, `topdown` or
`bottomup` of `loop_kernel.py`.  A curve is sampled at x = 0, 1, ..., samples - 1:

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

from dataclasses import dataclass
from functools import partial

from tensorwright.machine_code import Kind, NativeArray, NativeFunction, Number
from tensorwright.tuning.features.operations import BUFFERS
from tensorwright_lab.feature_sets.loop_kernel import LOOPS, LoopFormula, LoopsInCode, log2

QUANTITIES = ("count", "reuse", "topdown", "bottomup")
PUBLISHED = ("count/reuse", "count/topdown")
PAIRED = ("count/reuse", "count/topdown", "count/bottomup")
SAMPLES = 30

_SLACK = 1e-6


@dataclass(frozen=True, slots=True)
class CurveSettings:
    """The choice of samples.

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


def relation_curves(settings: CurveSettings) -> LoopFormula:
    """The columns in the order of `CurveSettings.columns`."""
    return LoopFormula(len(settings.columns), partial(_write, settings=settings))


@dataclass(frozen=True, slots=True, eq=False)
class _Points:
    """The points of a curve in the function that is written: x and y of so many, by x."""

    x: NativeArray
    y: NativeArray
    count: Number


def _write(
    code: NativeFunction, loops: LoopsInCode, row: NativeArray, settings: CurveSettings
) -> None:
    logs = {name: code.array(Kind.F32, 1 + LOOPS) for name in QUANTITIES}
    own = {"topdown": loops.topdown, "bottomup": loops.bottomup}
    for name, values in own.items():
        _write_logs(code, logs[name], values, loops.depth)
    x_of, y_of = (code.array(Kind.F32, 1 + LOOPS) for _ in range(2))
    points = _Points(x_of, y_of, loops.depth + 1)
    if settings.is_paired:
        with code.when(loops.depth > 0):
            logs["topdown"][0] = logs["topdown"][1]
    width = 2 * settings.samples
    with code.loop(loops.buffers) as buffer, code.when(loops.nbytes[buffer] > 0.0):
        _write_logs(code, logs["count"], loops.count.part(buffer * LOOPS), loops.depth)
        _write_logs(code, logs["reuse"], loops.reuse.part(buffer * LOOPS), loops.depth)
        start = buffer * (width * len(settings.relations))
        for number, (x, y) in enumerate(settings.relations):
            # Theorem: going outwards topdown falls, and no other quantity does.
            for name, array in ((x, points.x), (y, points.y)):
                by = x if settings.is_paired else name
                stay = 0 if settings.is_paired else 1
                _take(code, array, logs[name], points.count, stay if by == "topdown" else None)
            if settings.is_paired:
                _sort_points(code, points)
            _write_samples(code, points, row.part(start + number * width), settings.samples)


def _write_logs(
    code: NativeFunction, logs: NativeArray, values: NativeArray, depth: Number
) -> None:
    """The quantity of each loop, innermost first, after that of the point inside them all."""
    logs[0] = 0.0
    with code.loop(depth) as k:
        logs[k + 1] = log2(values[k].larger(1.0))


def _take(
    code: NativeFunction, to: NativeArray, values: NativeArray, count: Number, stay: int | None
) -> None:
    """Values in their order where `stay` is None; else backwards, after the first `stay`."""
    with code.loop(count) as n:
        index = n
        if stay is not None:
            index = (n < stay).choose(n, count - (n + (1 - stay)))
        to[n] = values[index]


def _sort_points(code: NativeFunction, points: _Points) -> None:
    """By x and, where x is equal, by y: hardly anything moves, since only equal ones do."""
    with code.loop(points.count, 1) as n:
        x, y = points.x[n], points.y[n]
        at = code.variable(Kind.I64, 0)
        at.set(n)

        def is_after() -> Number:
            before = (at.now - 1).larger(0)
            other, height = points.x[before], points.y[before]
            return (at.now > 0) & ((other > x) | (other.equals(x) & (height > y)))

        with code.repeat(is_after):
            before = at.now - 1
            points.x[at.now], points.y[at.now] = points.x[before], points.y[before]
            at.set(before)
        points.x[at.now], points.y[at.now] = x, y


def _write_samples(code: NativeFunction, points: _Points, row: NativeArray, samples: int) -> None:
    """For each sample the last point that is not beyond it: its y, and how far it is."""
    last = code.variable(Kind.I64, 0)
    with code.loop(samples) as sample:
        at = sample.cast("sitofp", Kind.F32)
        reached = at + _SLACK

        def is_reached() -> Number:
            after = (last.now + 1).smaller(LOOPS)
            return (last.now + 1 < points.count) & (points.x[after] < reached)

        with code.repeat(is_reached):
            last.set(last.now + 1)
        row[sample * 2] = points.y[last.now]
        row[sample * 2 + 1] = at - points.x[last.now]
