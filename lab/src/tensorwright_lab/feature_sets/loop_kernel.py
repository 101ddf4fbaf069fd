"""Features over loops, candidate by candidate, in native code: the loops once, then a formula.

For a loop k of extent e_k, and a buffer b that it moves or does not:

    topdown_k    product of e_j over the loop and those outside of it
    bottomup_k   product of e_j over the loop and those inside of it
    count_bk     product of e_j over those of the latter that move b: how many places are touched
    reuse_bk     product of e_j over the others: how often each of them is touched
    stride_bk    elements from the place touched in one iteration to that of the next, on average
    period_bk    iterations after which an index begins again, as those of fused loops do

Going outwards bottomup, count and reuse never fall, and topdown never rises.  The stored buffer of
a statement comes first, then the others, those with most bytes first.

A candidate costs a statement's loops times its buffers, and what its columns cost to write; NumPy
takes fifty times that, since which loops there are differs from candidate to candidate.

Source:   Chen et al., AutoTVM, NeurIPS 2018, section 3.1 and its appendix; the definitions are
          those of its code (tvm, src/autotvm/touch_extractor.cc), whose `mod` is a constant: here
          it is the period.  There every access is a buffer of its own, here those of a statement
          to one buffer are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright.machine_code import Kind, Module, NativeArray, NativeFunction, Number
from tensorwright.runtime import LoadedFunction, load_function
from tensorwright.schedule import ForKind
from tensorwright.tuning.features.columns import Features
from tensorwright.tuning.features.operations import BUFFERS

LOOPS = 24  # the number of innermost loops of a statement that are described
KINDS = tuple(ForKind)
OPERATIONS: Mapping[str, tuple[str, ...]] = {
    "add": ("float_addsub", "float_mad"),
    "mul": ("float_mul", "float_mad"),
    "div": ("float_divmod",),
}

_PARAMETERS = {
    **dict.fromkeys(("cells", "kinds", "first", "out"), Kind.POINTER),
    **dict.fromkeys(("statements", "loops", "buffers", "count"), Kind.I64),
}


@dataclass(frozen=True, slots=True)
class CellRows:
    """The rows of a statement's loops, before a candidate's are told from those it lacks.

    Rows in order, those of loops outermost first:

        length (loops)   moves, stride, period (buffers, loops) each   bytes (buffers)   operations
    """

    loops: int
    buffers: int

    @property
    def moves(self) -> int:
        """The row of the first buffer's first loop; the same for `stride` and `period`."""
        return self.loops

    @property
    def stride(self) -> int:
        """As `moves`."""
        return self.moves + self.buffers * self.loops

    @property
    def period(self) -> int:
        """As `moves`."""
        return self.stride + self.buffers * self.loops

    @property
    def nbytes(self) -> int:
        """The row of the first buffer."""
        return self.period + self.buffers * self.loops

    @property
    def operations(self) -> int:
        """The row of the first of `OPERATIONS`."""
        return self.nbytes + self.buffers

    @property
    def count(self) -> int:
        """How many there are."""
        return self.operations + len(OPERATIONS)


@dataclass(frozen=True, slots=True, eq=False)
class LoopsInCode:
    """The loops of a candidate's statement in the function that is written, innermost first.

    depth      how many there are                       kind    (depth): place in `KINDS`
    first      (depth): the number of the first statement that is in the same loop
    length, topdown, bottomup        (depth) floats
    count, reuse, stride, period     (BUFFERS * LOOPS) floats, those of a buffer from `at` on
    nbytes     (BUFFERS) floats, 0 for buffers that there are not
    buffers    how many of BUFFERS there may be         operations   (3) floats
    """

    depth: Number
    kind: NativeArray
    first: NativeArray
    length: NativeArray
    topdown: NativeArray
    bottomup: NativeArray
    count: NativeArray
    reuse: NativeArray
    stride: NativeArray
    period: NativeArray
    nbytes: NativeArray
    buffers: Number
    operations: NativeArray


WriteFormula: TypeAlias = Callable[[NativeFunction, LoopsInCode, NativeArray], None]
"""Writes what fills a statement's row of features, which is 0 before."""


@dataclass(frozen=True, slots=True, eq=False)
class LoopFormula:
    """From loops to features: the number of columns, and the code that computes them."""

    columns: int
    write: WriteFormula


def run_formula(
    formula: LoopFormula,
    rows: CellRows,
    cells: Features,
    kinds: NDArray[np.int64],
    first: NDArray[np.int64],
) -> Features:
    """The features of candidates.

    Shapes:  cells (statements, rows.count, n); kinds, first (statements, rows.loops): see
             `LoopsInCode` -> (n, statements, formula.columns)
    """
    statements, _, count = cells.shape
    features = np.empty((count, statements, formula.columns), np.float32)
    if features.size:
        given = np.ascontiguousarray(cells, np.float32)
        _compiled(formula).run(
            given.ctypes.data,
            kinds.ctypes.data,
            first.ctypes.data,
            features.ctypes.data,
            statements,
            rows.loops,
            rows.buffers,
            count,
        )
    return features


@lru_cache(maxsize=64)
def _compiled(formula: LoopFormula) -> LoadedFunction:
    """The code of a formula, compiled once in each process."""
    code = NativeFunction(Module(), "tw_loops", tuple(_PARAMETERS.values()))
    given = dict(zip(_PARAMETERS, code.parameters, strict=True))
    gather, statements = _Gather(code, given), given["statements"]
    with code.loop(statements) as statement, code.loop(given["count"]) as candidate:
        loops = gather.write(statement, candidate)
        offset = (candidate * statements + statement) * formula.columns
        row = given["out"].array(Kind.F32).part(offset)
        with code.loop(formula.columns) as column:
            row[column] = 0.0
        formula.write(code, loops, row)
    code.finish()
    return load_function(code)


def log2(number: Number) -> Number:
    """The logarithm to base 2 of a float."""
    note = "nounwind willreturn memory(none)"
    call = number.code.call_text(number.kind, "log2f", (number.kind, number.name), note=note)
    return number.result(number.kind, call)


class _Gather:
    """Writes code that finds the loops of a candidate's statement; mutable, one per function."""

    def __init__(self, code: NativeFunction, given: Mapping[str, Number]) -> None:
        self._code = code
        self._given = given
        self._row_of = code.array(Kind.I64, LOOPS)
        self._order = code.array(Kind.I64, BUFFERS)
        self._own = {
            name: code.array(Kind.F32, LOOPS) for name in ("length", "topdown", "bottomup")
        }
        touches = ("count", "reuse", "stride", "period")
        self._touches = {name: code.array(Kind.F32, BUFFERS * LOOPS) for name in touches}
        self._numbers = {name: code.array(Kind.I64, LOOPS) for name in ("kind", "first")}
        self._nbytes = code.array(Kind.F32, BUFFERS)
        self._operations = code.array(Kind.F32, len(OPERATIONS))
        self._loops = given["loops"]
        self._buffers = given["buffers"]

    def write(self, statement: Number, candidate: Number) -> LoopsInCode:
        """The loops of one; what is found is overwritten by the next."""
        code = self._code
        touching = self._buffers * self._loops
        rows = self._loops + touching * 3 + self._buffers + len(OPERATIONS)
        width = self._given["count"]
        start = statement * rows * width + candidate
        cells = self._given["cells"].array(Kind.F32).part(start)

        def cell(row: Number) -> Number:
            return cells[row * width]

        depth = self._present(statement, cell)
        nbytes = self._loops + touching * 3
        buffers = self._largest(cell, nbytes)
        with code.loop(buffers) as slot:
            self._touched(slot, depth, cell, touching)
        for n in range(len(OPERATIONS)):
            self._operations[n] = cell(nbytes + self._buffers + n)
        return LoopsInCode(
            depth,
            **self._numbers,
            **self._own,
            **self._touches,
            nbytes=self._nbytes,
            buffers=buffers,
            operations=self._operations,
        )

    def _present(self, statement: Number, cell: Callable[[Number], Number]) -> Number:
        """The loops of more than one iteration, innermost first; how many there are."""
        code = self._code
        depth, inside = code.variable(Kind.I64, 0), code.variable(Kind.F32, 1.0)
        with code.loop(self._loops) as n:
            loop = self._loops - (n + 1)
            extent = cell(loop)
            with code.when((extent > 1.0) & (depth.now < LOOPS)):
                k = depth.now
                inside.set(inside.now * extent)
                self._row_of[k] = loop
                self._own["length"][k] = extent
                self._own["bottomup"][k] = inside.now
                for name, array in self._numbers.items():
                    given = self._given["kinds" if name == "kind" else name].array(Kind.I64)
                    array[k] = given[statement * self._loops + loop]
                depth.set(k + 1)
        count = depth.now
        outside = code.variable(Kind.F32, 1.0)
        with code.loop(count) as n:
            k = count - (n + 1)
            outside.set(outside.now * self._own["length"][k])
            self._own["topdown"][k] = outside.now
        return count

    def _largest(self, cell: Callable[[Number], Number], nbytes: Number) -> Number:
        """The stored buffer, then the others with most bytes first; how many are described."""
        code = self._code
        for slot in range(BUFFERS):
            self._nbytes[slot] = 0.0
        filled = code.variable(Kind.I64, 0)
        with code.loop(self._buffers) as buffer:
            size = cell(nbytes + buffer)
            index = code.variable(Kind.I64, 0)
            index.set(filled.now)
            is_larger = (index.now > 1) & (self._nbytes[BUFFERS - 1] < size)
            with code.when((index.now < BUFFERS) | is_larger):
                index.set(index.now.smaller(BUFFERS - 1))
                filled.set(index.now + 1)

                def is_before() -> Number:
                    before = (index.now - 1).larger(0)
                    return (index.now > 1) & (self._nbytes[before] < size)

                with code.repeat(is_before):
                    before = index.now - 1
                    self._nbytes[index.now] = self._nbytes[before]
                    self._order[index.now] = self._order[before]
                    index.set(before)
                self._nbytes[index.now] = size
                self._order[index.now] = buffer
        return filled.now

    def _touched(
        self, slot: Number, depth: Number, cell: Callable[[Number], Number], touching: Number
    ) -> None:
        """How a buffer is touched in each loop."""
        code = self._code
        is_used, one = self._nbytes[slot] > 0.0, code.number(1.0, Kind.F32)
        start = self._loops + self._order[slot] * self._loops
        counts, again = code.variable(Kind.F32, 1.0), code.variable(Kind.F32, 1.0)
        with code.loop(depth) as k:
            row = start + self._row_of[k]
            extent = self._own["length"][k]
            moves = cell(row) > 0.0
            counts.set(counts.now * moves.choose(extent, 1.0))
            again.set(again.now * moves.choose(one, extent))
            quantities = {
                "count": is_used.choose(counts.now, 0.0),
                "reuse": is_used.choose(again.now, 0.0),
                "stride": moves.choose(cell(row + touching), 0.0),
                "period": moves.choose(cell(row + touching * 2), 0.0),
            }
            for name, content in quantities.items():
                self._touches[name][slot * LOOPS + k] = content
