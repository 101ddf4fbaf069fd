"""The loops of statements as arrays: what the feature sets over loops are computed from.

A statement is looked at by itself, with the loops around it, outermost first.  Loops of one
iteration are left out, as lowering drops them, so that a sketch with its decisions open and the
program lowered from the same decisions taken give the same arrays.

For a loop k of extent e_k, and a buffer b that it moves or does not (`moves`):

    topdown_k    product of e_j over the loop and those outside of it
    bottomup_k   product of e_j over the loop and those inside of it
    count_bk     product of e_j over those of the latter that move b: how many places are touched
    reuse_bk     product of e_j over the others: how often each of them is touched
    stride_bk    elements from the place touched in one iteration to that of the next, on average
    period_bk    iterations after which an index begins again, as those of fused loops do

Source:   Chen et al., AutoTVM, NeurIPS 2018, section 3.1 and its appendix; the definitions are
          those of its code (tvm, src/autotvm/touch_extractor.cc), whose `mod` is a constant: here
          it is the period.  There every access is a buffer of its own, here those of a statement
          to one buffer are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.loop import LoopProgram
from tensorwright.schedule import ForKind
from tensorwright.tuning.features.access import BufferUse
from tensorwright.tuning.features.cell_tables import CellTable, Features, ResultNumbers
from tensorwright.tuning.features.columns import Cell, ColumnGraph
from tensorwright.tuning.features.formulas import Nest, nests_of
from tensorwright.tuning.features.names import BUFFERS

LOOPS = 24  # the innermost so many loops of a statement are described
KINDS = tuple(ForKind)
OPERATIONS: Mapping[str, tuple[str, ...]] = {
    "add": ("float_addsub", "float_mad"),
    "mul": ("float_mul", "float_mad"),
    "div": ("float_divmod",),
}

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class LoopArrays:
    """The loops of programs of equal numbers of statements, outermost first; 0 where none is.

    The stored buffer of a statement comes first, then the others, those with most bytes first.

    length       (statements, LOOPS, n): iterations
    kind         (statements, LOOPS, n): the number of its `ForKind` in `KINDS`
    first        (statements, LOOPS, n): the number of the first statement that is in this loop, too
    depth        (statements, n): how many loops there are
    topdown, bottomup              (statements, LOOPS, n)
    count, reuse, stride, period   (statements, BUFFERS, LOOPS, n)
    nbytes       (statements, BUFFERS, n): different bytes that the statement touches
    operations   (statements, 3, n): additions, multiplications, divisions of one execution
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
        """Which loops there are (statements, LOOPS, n)."""
        return self.length > 0


class LoopPlan:
    """What computes the loops of a program's statements from columns of decisions."""

    def __init__(self, program: LoopProgram, graph: ColumnGraph | None = None) -> None:
        own = graph or ColumnGraph()
        nests = nests_of(program, own)
        self._loops = max((len(nest.loops) for nest in nests), default=0)
        self._buffers = max((len(nest.uses) for nest in nests), default=0)
        shape = (len(nests), self._loops)
        touches = (len(nests), self._buffers, self._loops)
        self._kind = np.zeros(shape, np.int64)
        self._first = np.zeros(shape, np.int64)
        self._length = CellTable(shape)
        self._touches = {name: CellTable(touches) for name in ("moves", "stride", "period")}
        self._bytes = CellTable(touches[:2])
        self._operations = CellTable((len(nests), len(OPERATIONS)))
        results = ResultNumbers()
        for n, nest in enumerate(nests):
            self._place(n, nest, nests, results)
        self._program = own.program(list(results))
        if graph is None:
            own.clear()

    def __len__(self) -> int:
        return len(self._program)

    def run(self, columns: Mapping[str, NDArray[Any]], count: int) -> LoopArrays:
        """The loops of `count` candidates."""
        results = self._program.run(columns, count)
        length = self._length.filled(results, count)
        nbytes = self._bytes.filled(results, count)
        loops, buffers = _present(length), _largest(nbytes)
        is_there = loops >= 0
        nbytes = _taken(nbytes, buffers, 1)
        is_used = is_there[:, None] & (nbytes > 0)[:, :, None]
        moves, stride, period = (
            _taken(_taken(table.filled(results, count), buffers[:, :, None], 1), loops[:, None], 2)
            for table in self._touches.values()
        )
        length = _taken(length, loops, 1)
        extents = np.where(is_there, length, 1)
        is_moved = moves > 0
        counted = np.where(is_moved, extents[:, None], 1)
        again = np.where(is_moved, 1, extents[:, None])
        return LoopArrays(
            length,
            _taken(self._kind[..., None], loops, 1),
            _taken(self._first[..., None], loops, 1),
            is_there.sum(axis=1),
            np.cumprod(extents, axis=1, dtype=np.float32) * is_there,
            _products_inside(extents) * is_there,
            _products_inside(counted) * is_used,
            _products_inside(again) * is_used,
            stride * is_moved,
            period * is_moved,
            nbytes,
            self._operations.filled(results, count),
        )

    def _place(self, n: int, nest: Nest, nests: tuple[Nest, ...], results: ResultNumbers) -> None:
        for name, classes in zip(range(len(OPERATIONS)), OPERATIONS.values(), strict=True):
            total: Cell = 0
            for each in classes:
                total = total + nest.counts.get(each, 0)
            self._operations.put(n * len(OPERATIONS) + name, total, results)
        sharing = [nest.statement.shared_loops(other.statement) for other in nests[:n]]
        for loop, extent in enumerate(nest.loops.extents):
            place = n * self._loops + loop
            self._kind[n, loop] = KINDS.index(nest.statement.loops[loop].kind)
            self._first[n, loop] = next((s for s, k in enumerate(sharing) if k > loop), n)
            self._length.put(place, extent, results)
        for b, use in enumerate(nest.uses):
            self._place_use(n * self._buffers + b, use, len(nest.loops), results)

    def _place_use(self, row: int, use: BufferUse, loops: int, results: ResultNumbers) -> None:
        self._bytes.put(row, use.elements[0] * use.element_bytes, results)
        for loop in range(loops):
            place = row * self._loops + loop
            moves = use.moves[loop]
            self._touches["moves"].put(place, moves, results)
            if isinstance(moves, int) and not moves:
                continue
            self._touches["stride"].put(place, use.stride_of(loop), results)
            self._touches["period"].put(place, use.period_of(loop), results)


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
