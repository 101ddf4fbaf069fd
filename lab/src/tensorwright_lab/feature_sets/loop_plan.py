"""The loops of statements as columns of decisions, from which feature sets over loops start.

A statement is looked at by itself, with the loops around it, outermost first.  Loops of one
iteration are left out, as lowering drops them, so that a sketch with its decisions open and the
program lowered from the same decisions taken give the same features.  Which loops there are differs
from candidate to candidate: `loop_kernel.py` finds out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.loop import LoopProgram
from tensorwright.tuning.features.access import BufferUse
from tensorwright.tuning.features.columns import (
    Cell,
    CellTable,
    ColumnGraph,
    Features,
    ResultNumbers,
)
from tensorwright.tuning.features.formulas import Nest, nests_of
from tensorwright_lab.feature_sets import loop_kernel


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
