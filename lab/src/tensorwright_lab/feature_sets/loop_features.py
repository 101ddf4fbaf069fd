"""Features that are functions of loops: of candidates of a sketch, and of single programs.

The loops of statements as columns of decisions, from which feature sets over loops start.

A statement is looked at by itself, with the loops around it, outermost first.  Loops of one
iteration are left out, as lowering drops them, so that a sketch with its decisions open and the
program lowered from the same decisions taken give the same features.  Which loops there are differs
from candidate to candidate: `loop_kernel.py` finds out.

The features of loops one after the other, the innermost first.

For each of LOOPS loops, counted from the innermost (0 where there are fewer):

    log2(length + 1), nest level (1 for the outermost), log2(topdown + 1), log2(bottomup + 1),
    1 for the way it runs (serial, unroll, vectorize, parallel, ...), 0 for the others,
    of each buffer: log2(stride + 1), log2(period + 1), log2(count + 1), log2(reuse + 1)

and of the statement log2(additions + 1), of multiplications, of divisions of one execution: AutoTVM
notes them at the loop that they are directly in, the innermost.  The rest is defined in
`loop_kernel.py`.

A column is about the loop at one place, so it says different things for different operators: a
model of these features ranks programs of workloads that are alike.

Source:   Chen et al., AutoTVM, NeurIPS 2018, appendix; tvm, src/autotvm/touch_extractor.cc.

The tree of loops, for a model that reads it loop by loop (`tree_gru.py`).

A row is a statement: the loops around it, outermost first, each with

    1 where there is such a loop,
    the number of the first statement that is in the same loop, so that the tree can be told from
    the rows: two statements share their k-th loops where both have the same number there,
    and the fields that `itervar` has of it;

then log2(x + 1) of the additions, multiplications and divisions of one execution, and of the bytes
of each buffer that the statement touches.

Source:   Chen et al., AutoTVM, NeurIPS 2018, section 3.1 and appendix (TreeGRU).

Context relations: the features of loops in a fixed length that does not depend on the operator.

For quantities i and j of the loops around a buffer's accesses, and thresholds 2^t:

    R_ij(t) = the largest log2(i_k + 1) over the loops k with j_k < 2^t; 0 where there is none

j is `count` (how much is touched inside a loop) or `topdown` (how often a loop is run); i is one of
`reuse`, `topdown`, `bottomup`, `stride`, and the length of the loop if it runs in vectors, unrolled
or in parallel, else 0: "what is the most reuse in loops that touch less than 2^t elements", as it
decides what a cache of that size can keep.  t = 0, 2, ..., 28.  Rows are statements, five buffers
of each: the stored one, then those with most bytes; and of the statement, log2(x + 1) of its
additions, multiplications, divisions, of the executions, and of each buffer's bytes.

Source:   Chen et al., AutoTVM, NeurIPS 2018, section 4 ("context relation features").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import without_collection
from tensorwright.loop import LoopProgram, lower
from tensorwright.machine_code import Kind, NativeArray, NativeFunction, Number
from tensorwright.schedule import ForKind, ScheduleState, Trace, replay
from tensorwright.tuning.features.access import BufferUse
from tensorwright.tuning.features.columns import (
    Cell,
    CellTable,
    ColumnGraph,
    Features,
    ResultNumbers,
)
from tensorwright.tuning.features.featurizer import PlansBySketch, lower_sketch
from tensorwright.tuning.features.formulas import Nest, nests_of
from tensorwright.tuning.features.operations import BUFFERS
from tensorwright.tuning.space.sketch import Sketch
from tensorwright_lab.feature_sets import loop_kernel
from tensorwright_lab.feature_sets.loop_kernel import (
    LOOPS,
    OPERATIONS,
    LoopFormula,
    LoopsInCode,
    log2,
)


class LoopPlan:
    """A plan that computes the loops of a program's statements from columns of decisions."""

    def __init__(self, program: LoopProgram, graph: ColumnGraph | None = None) -> None:
        own = graph or ColumnGraph()
        nests = nests_of(program, own)
        loops = max((len(nest.loops) for nest in nests), default=0)
        buffers = max((len(nest.uses) for nest in nests), default=0)
        self.rows = loop_kernel.CellRows(loops, buffers)
        self.kinds = np.zeros((len(nests), loops), np.int64)
        self.first = np.zeros((len(nests), loops), np.int64)
        self._cells = CellTable((len(nests), self.rows.count))
        results = ResultNumbers()
        for n, nest in enumerate(nests):
            self._add_nest(n, nest, nests, results)
        self._program = own.program(list(results))
        if graph is None:
            own.clear()

    def __len__(self) -> int:
        return len(self._program)

    def cells(self, columns: Mapping[str, NDArray[Any]], count: int) -> Features:
        """The loops of `count` candidates as numbers: (statements, `rows`, count)."""
        return self._cells.filled(self._program.run(columns, count), count)

    def run(
        self, columns: Mapping[str, NDArray[Any]], count: int, formula: loop_kernel.LoopFormula
    ) -> Features:
        """The features of `count` candidates (count, statements, columns of the formula)."""
        cells = self.cells(columns, count)
        return loop_kernel.run_formula(formula, self.rows, cells, self.kinds, self.first)

    def _add_nest(
        self, n: int, nest: Nest, nests: tuple[Nest, ...], results: ResultNumbers
    ) -> None:
        rows = self.rows
        start = n * rows.count
        for row, classes in enumerate(loop_kernel.OPERATIONS.values(), start + rows.operations):
            total: Cell = 0
            for each in classes:
                total = total + nest.counts.get(each, 0)
            self._cells.put(row, total, results)
        sharing = [nest.statement.shared_loops(other.statement) for other in nests[:n]]
        for loop, extent in enumerate(nest.loops.extents):
            self.kinds[n, loop] = loop_kernel.KINDS.index(nest.statement.loops[loop].kind)
            self.first[n, loop] = next((s for s, k in enumerate(sharing) if k > loop), n)
            self._cells.put(start + loop, extent, results)
        for b, use in enumerate(nest.uses):
            self._cells.put(start + rows.nbytes + b, use.elements[0] * use.element_bytes, results)
            self._place_use(start + b * rows.loops, use, len(nest.loops), results)

    def _place_use(self, start: int, use: BufferUse, loops: int, results: ResultNumbers) -> None:
        for loop in range(loops):
            moves = use.moves[loop]
            self._cells.put(start + self.rows.moves + loop, moves, results)
            if isinstance(moves, int) and not moves:
                continue
            self._cells.put(start + self.rows.stride + loop, use.stride_of(loop), results)
            self._cells.put(start + self.rows.period + loop, use.period_of(loop), results)


class LoopFeatures:
    """A `FeatureSource`: a row for each statement; remembers its results for a sketch."""

    def __init__(self, state: ScheduleState, formula: LoopFormula) -> None:
        self._state = state
        self._formula = formula
        self._plans: PlansBySketch[LoopPlan] = PlansBySketch()
        self._graph = ColumnGraph()
        finalize(self, self._graph.clear)

    def plan(self, sketch: Sketch) -> LoopPlan:
        """The loops of a sketch, lowered once with its decisions open."""
        return self._plans.get(sketch, self._make_plan)

    def _make_plan(self, sketch: Sketch) -> LoopPlan:
        with without_collection():
            return LoopPlan(lower_sketch(self._state, sketch), self._graph)

    def of_sketch(self, sketch: Sketch, genes: NDArray[np.int64]) -> Features:
        """As `FeatureSource.of_sketch`."""
        return self.plan(sketch).run(sketch.columns(genes), len(genes), self._formula)

    def of_trace(self, trace: Trace) -> Features:
        """As `FeatureSource.of_trace`."""
        program = lower(replay(self._state, trace))
        return LoopPlan(program).run({}, 1, self._formula)


_OWN_FIELDS = (
    "length",
    "nest_level",
    "topdown",
    "bottomup",
    *(f"is_{kind.value.replace('.', '_')}" for kind in loop_kernel.KINDS),
)
_TOUCH_FIELDS = ("stride", "period", "count", "reuse")
LOOP_FIELDS = (
    *_OWN_FIELDS,
    *(f"buffer{buffer}_{field}" for buffer in range(BUFFERS) for field in _TOUCH_FIELDS),
)
ITERVAR_COLUMNS: tuple[str, ...] = (
    *(f"loop{loop}_{field}" for loop in range(loop_kernel.LOOPS) for field in LOOP_FIELDS),
    *loop_kernel.OPERATIONS,
)


def _write(code: NativeFunction, loops: loop_kernel.LoopsInCode, row: NativeArray) -> None:
    with code.loop(loops.depth) as k:
        write_loop(code, loops, k, row.part(k * len(LOOP_FIELDS)))
    for n in range(len(loop_kernel.OPERATIONS)):
        row[loop_kernel.LOOPS * len(LOOP_FIELDS) + n] = log2(loops.operations[n] + 1.0)


def write_loop(
    code: NativeFunction, loops: loop_kernel.LoopsInCode, k: Number, row: NativeArray
) -> None:
    """The fields of a loop, counted from the innermost, into a row that is 0."""
    row[0] = log2(loops.length[k] + 1.0)
    row[1] = (loops.depth - k).cast("sitofp", Kind.F32)
    row[2] = log2(loops.topdown[k] + 1.0)
    row[3] = log2(loops.bottomup[k] + 1.0)
    row[loops.kind[k] + (len(_OWN_FIELDS) - len(loop_kernel.KINDS))] = 1.0
    with code.loop(loops.buffers) as buffer:
        touches = (loops.stride, loops.period, loops.count, loops.reuse)
        for field, array in enumerate(touches, len(_OWN_FIELDS)):
            quantity = array[buffer * loop_kernel.LOOPS + k]
            with code.when(quantity > 0.0):
                index = buffer * len(_TOUCH_FIELDS) + field
                row[index] = log2(quantity + 1.0)


ITERVAR = loop_kernel.LoopFormula(len(ITERVAR_COLUMNS), _write)


TREE_FIELDS: tuple[str, ...] = ("is_there", "first_statement", *LOOP_FIELDS)
LEAF_FIELDS: tuple[str, ...] = (
    *OPERATIONS,
    *(f"buffer{buffer}_bytes" for buffer in range(BUFFERS)),
)
LOOP_TREE_COLUMNS: tuple[str, ...] = (
    *(f"loop{loop}_{field}" for loop in range(LOOPS) for field in TREE_FIELDS),
    *LEAF_FIELDS,
)


def _write_tree(code: NativeFunction, loops: LoopsInCode, row: NativeArray) -> None:
    with code.loop(loops.depth) as k:
        own = row.part((loops.depth - (k + 1)) * len(TREE_FIELDS))
        own[0] = 1.0
        own[1] = loops.first[k].cast("sitofp", Kind.F32)
        write_loop(code, loops, k, own.part(2))
    leaf = LOOPS * len(TREE_FIELDS)
    for n in range(len(OPERATIONS)):
        row[leaf + n] = log2(loops.operations[n] + 1.0)
    for buffer in range(BUFFERS):
        row[leaf + len(OPERATIONS) + buffer] = log2(loops.nbytes[buffer] + 1.0)


LOOP_TREES = LoopFormula(len(LOOP_TREE_COLUMNS), _write_tree)


_MARKS = {"vector": ForKind.VECTOR, "unroll": ForKind.UNROLLED, "parallel": ForKind.PARALLEL}
_WHAT = ("reuse", "topdown", "bottomup", "stride", *_MARKS)
_WHERE = ("count", "topdown")
THRESHOLDS = tuple(range(0, 30, 2))
_PER_BUFFER = len(_WHAT) * len(_WHERE) * len(THRESHOLDS)
CONTEXT_COLUMNS: tuple[str, ...] = (
    *(
        f"buffer{buffer}_{what}_where_{where}_below_{threshold}"
        for buffer in range(BUFFERS)
        for what in _WHAT
        for where in _WHERE
        for threshold in THRESHOLDS
    ),
    *loop_kernel.OPERATIONS,
    "executions",
    *(f"buffer{buffer}_bytes" for buffer in range(BUFFERS)),
)


def _write_context(code: NativeFunction, loops: loop_kernel.LoopsInCode, row: NativeArray) -> None:
    logs = {
        name: code.array(Kind.F32, loop_kernel.LOOPS) for name in ("topdown", "bottomup", *_MARKS)
    }
    with code.loop(loops.depth) as k:
        logs["topdown"][k] = log2(loops.topdown[k] + 1.0)
        logs["bottomup"][k] = log2(loops.bottomup[k] + 1.0)
        length = log2(loops.length[k] + 1.0)
        for name, kind in _MARKS.items():
            number = loop_kernel.KINDS.index(kind)
            logs[name][k] = loops.kind[k].equals(number).choose(length, 0.0)
    with code.loop(loops.buffers) as buffer, code.when(loops.nbytes[buffer] > 0.0):
        own_row = row.part(buffer * _PER_BUFFER)
        with code.loop(loops.depth) as k:
            index = buffer * loop_kernel.LOOPS + k
            own = {
                "reuse": log2(loops.reuse[index] + 1.0),
                "stride": log2(loops.stride[index] + 1.0),
                **{name: array[k] for name, array in logs.items()},
            }
            for where, name in enumerate(_WHERE):
                reached = loops.count[index] if name == "count" else loops.topdown[k]
                _raise(code, own_row.part(where * len(THRESHOLDS)), own, reached)
        for column in range(0, _PER_BUFFER, len(THRESHOLDS)):
            _spread(code, own_row.part(column))
    _write_counts(code, loops, row.part(BUFFERS * _PER_BUFFER))


def _raise(
    code: NativeFunction, row: NativeArray, own: Mapping[str, Number], reached: Number
) -> None:
    """Note a loop's quantities at the first threshold that it is below."""
    bits = reached.larger(1.0).cast("bitcast", Kind.I32) >> 23
    exponent = bits.cast("zext", Kind.I64) - 127
    t = (exponent >> 1) + 1
    with code.when(t < len(THRESHOLDS)):
        for index, name in enumerate(_WHAT):
            column = t + index * len(_WHERE) * len(THRESHOLDS)
            row[column] = row[column].larger(own[name])


def _spread(code: NativeFunction, row: NativeArray) -> None:
    """Take the running maximum over thresholds: a value below one is below those after it."""
    most = code.variable(Kind.F32, 0.0)
    with code.loop(len(THRESHOLDS)) as t:
        most.set(most.now.larger(row[t]))
        row[t] = most.now


def _write_counts(code: NativeFunction, loops: loop_kernel.LoopsInCode, row: NativeArray) -> None:
    for n in range(len(loop_kernel.OPERATIONS)):
        row[n] = log2(loops.operations[n] + 1.0)
    executions = code.variable(Kind.F32, 1.0)
    with code.when(loops.depth > 0):
        executions.set(loops.topdown[0])
    row[len(loop_kernel.OPERATIONS)] = log2(executions.now + 1.0)
    for buffer in range(BUFFERS):
        row[len(loop_kernel.OPERATIONS) + 1 + buffer] = log2(loops.nbytes[buffer] + 1.0)


CONTEXT = loop_kernel.LoopFormula(len(CONTEXT_COLUMNS), _write_context)
