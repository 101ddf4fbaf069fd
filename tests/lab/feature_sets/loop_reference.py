"""Features over loops in NumPy, for whole populations: what native code is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.schedule import ForKind
from tensorwright.tuning.features.operations import BUFFERS
from tensorwright_lab.feature_sets.loop_kernel import KINDS, LOOPS, CellRows
from tensorwright_lab.feature_sets.relation_curves import CurveSettings

Features = NDArray[np.float32]
Ints = NDArray[np.int64]

_MARKS = {"vector": ForKind.VECTOR, "unroll": ForKind.UNROLLED, "parallel": ForKind.PARALLEL}
_WHAT = ("reuse", "topdown", "bottomup", "stride", *_MARKS)
_WHERE = ("count", "topdown")
_THRESHOLDS = tuple(range(0, 30, 2))
_SLACK = np.float32(1e-6)


@dataclass(frozen=True, slots=True, eq=False)
class LoopArrays:
    """The loops of programs of equal numbers of statements, outermost first; 0 where none is.

    length, kind, first            (statements, LOOPS, n)      depth        (statements, n)
    topdown, bottomup              (statements, LOOPS, n)      nbytes       (statements, BUFFERS, n)
    count, reuse, stride, period   (statements, BUFFERS, LOOPS, n)
    operations                     (statements, 3, n)
    """

    length: Features
    kind: Ints
    first: Ints
    depth: Ints
    topdown: Features
    bottomup: Features
    count: Features
    reuse: Features
    stride: Features
    period: Features
    nbytes: Features
    operations: Features

    @property
    def is_there(self) -> NDArray[np.bool_]:
        return self.length > 0


def loop_arrays(rows: CellRows, cells: Features, kinds: Ints, first: Ints) -> LoopArrays:
    """What `run_formula` is given, as arrays."""
    statements, _, count = cells.shape
    shape = (statements, rows.buffers, rows.loops, count)
    touching = rows.buffers * rows.loops
    length = cells[:, : rows.loops]
    nbytes = cells[:, rows.nbytes : rows.nbytes + rows.buffers]
    loops, buffers = _present(length), _largest(nbytes)
    is_there = loops >= 0
    nbytes = _taken(nbytes, buffers, 1)
    is_used = is_there[:, None] & (nbytes > 0)[:, :, None]
    moves, stride, period = (
        _taken(
            _taken(cells[:, at : at + touching].reshape(shape), buffers[:, :, None], 1),
            loops[:, None],
            2,
        )
        for at in (rows.moves, rows.stride, rows.period)
    )
    length = _taken(length, loops, 1)
    extents = np.where(is_there, length, 1)
    is_moved = moves > 0
    counted = np.where(is_moved, extents[:, None], 1)
    again = np.where(is_moved, 1, extents[:, None])
    return LoopArrays(
        length,
        _taken(kinds[..., None], loops, 1),
        _taken(first[..., None], loops, 1),
        is_there.sum(axis=1),
        np.cumprod(extents, axis=1, dtype=np.float32) * is_there,
        _products_inside(extents) * is_there,
        _products_inside(counted) * is_used,
        _products_inside(again) * is_used,
        stride * is_moved,
        period * is_moved,
        nbytes,
        cells[:, rows.operations :],
    )


def _present(length: Features) -> Ints:
    """The loops that are there, of at most the innermost LOOPS: (statements, LOOPS, n), -1 for
    none.
    """
    statements, _, count = length.shape
    is_there = length > 1
    is_there &= np.cumsum(is_there[:, ::-1], axis=1)[:, ::-1] <= LOOPS
    order = np.argsort(~is_there, axis=1, kind="stable")[:, :LOOPS]
    found = np.full((statements, LOOPS, count), -1, np.int64)
    number = np.arange(LOOPS)[: order.shape[1], None]
    found[:, : order.shape[1]] = np.where(number < is_there.sum(axis=1)[:, None], order, -1)
    return found


def _largest(nbytes: Features) -> Ints:
    """The stored buffer, then the others with most bytes first: (statements, BUFFERS, n), -1 for
    none.
    """
    statements, _, count = nbytes.shape
    found = np.full((statements, BUFFERS, count), -1, np.int64)
    found[:, 0] = 0
    order = 1 + np.argsort(-nbytes[:, 1:], axis=1, kind="stable")
    found[:, 1 : 1 + order.shape[1]] = order[:, : BUFFERS - 1]
    return found


def _taken(values: NDArray[Any], places: Ints, axis: int) -> NDArray[Any]:
    """Values at places along an axis; 0 where the place is -1."""
    others = [each.shape[:axis] + each.shape[axis + 1 :] for each in (values, places)]
    shape = np.broadcast_shapes(*others)
    full = (*shape[:axis], values.shape[axis], *shape[axis:])
    if not values.shape[axis]:
        return np.zeros((*shape[:axis], places.shape[axis], *shape[axis:]), values.dtype)
    wanted = np.broadcast_to(places, (*shape[:axis], places.shape[axis], *shape[axis:]))
    found = np.take_along_axis(np.broadcast_to(values, full), np.maximum(wanted, 0), axis)
    return np.where(wanted >= 0, found, 0).astype(values.dtype, copy=False)


def _products_inside(extents: Features) -> Features:
    """The product over each loop and those inside of it."""
    found: Features = np.cumprod(extents[..., ::-1, :], axis=-2)[..., ::-1, :]
    return found


def context(loops: LoopArrays) -> Features:
    """(statements, columns, n), the columns in the order of `CONTEXT_COLUMNS`."""
    shape = loops.count.shape
    own = {
        "reuse": loops.reuse,
        "topdown": np.broadcast_to(loops.topdown[:, None], shape),
        "bottomup": np.broadcast_to(loops.bottomup[:, None], shape),
        "stride": loops.stride,
    }
    for name, kind in _MARKS.items():
        marked = np.where(loops.kind == KINDS.index(kind), loops.length, 0)
        own[name] = np.broadcast_to(marked[:, None], shape)
    what = np.log2(np.stack([own[name] for name in _WHAT], axis=2) + 1)
    limits = np.exp2(np.array(_THRESHOLDS, np.float32))
    is_there = np.broadcast_to(loops.is_there[:, None], shape) & (loops.nbytes > 0)[:, :, None]
    found = np.zeros(
        (shape[0], BUFFERS, len(_WHAT), len(_WHERE), len(limits), shape[3]), np.float32
    )
    for place, name in enumerate(_WHERE):
        where = loops.count if name == "count" else own["topdown"]
        for t, limit in enumerate(limits):
            is_below = (is_there & (where < limit))[:, :, None]
            found[:, :, :, place, t] = np.where(is_below, what, 0).max(axis=3)
    executions = np.where(loops.is_there, loops.length, 1).prod(axis=1)[:, None]
    counts = np.concatenate([loops.operations, executions, loops.nbytes], axis=1)
    flat = found.reshape(shape[0], -1, shape[3])
    return np.concatenate([flat, np.log2(counts + 1)], axis=1)


def itervar(loops: LoopArrays) -> Features:
    """(statements, columns, n), the columns in the order of `ITERVAR_COLUMNS`."""
    rows = loop_rows(loops)
    places = loops.depth[:, None] - 1 - np.arange(LOOPS)[:, None]
    flipped = np.take_along_axis(rows, np.maximum(places, 0)[:, :, None], axis=1)
    flipped = np.where((places >= 0)[:, :, None], flipped, 0)
    flat = flipped.reshape(len(rows), -1, rows.shape[-1])
    return np.concatenate([flat, np.log2(loops.operations + 1)], axis=1)


def loop_rows(loops: LoopArrays) -> Features:
    """The fields of each loop, outermost first: (statements, LOOPS, fields, n)."""
    is_there = loops.is_there
    level = np.arange(1, LOOPS + 1, dtype=np.float32)[:, None] * is_there
    own = [
        np.log2(loops.length + 1),
        level,
        np.log2(loops.topdown + 1),
        np.log2(loops.bottomup + 1),
        *((loops.kind == number) & is_there for number in range(len(KINDS))),
    ]
    touches = np.stack([loops.stride, loops.period, loops.count, loops.reuse], axis=2)
    touched = np.moveaxis(np.log2(touches + 1), 3, 1)  # (statements, LOOPS, BUFFERS, fields, n)
    flat = touched.reshape(*touched.shape[:2], -1, touched.shape[-1])
    return np.concatenate([np.stack(own, axis=2, dtype=np.float32), flat], axis=2)


def loop_tree(loops: LoopArrays) -> Features:
    """(statements, columns, n), the columns in the order of `LOOP_TREE_COLUMNS`."""
    place = np.stack([loops.is_there, loops.first], axis=2, dtype=np.float32)
    rows = np.concatenate([place, loop_rows(loops)], axis=2)
    leaf = np.log2(np.concatenate([loops.operations, loops.nbytes], axis=1) + 1)
    return np.concatenate([rows.reshape(len(rows), -1, rows.shape[-1]), leaf], axis=1)


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
