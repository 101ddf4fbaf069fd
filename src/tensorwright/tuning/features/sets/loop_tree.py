"""The tree of loops, for a model that reads it loop by loop (`models/embedding/`).

A row is a statement: the loops around it, outermost first, each with

    1 where there is such a loop,
    the number of the first statement that is in the same loop, so that the tree can be told from
    the rows: two statements share their k-th loops where both have the same number there,
    and the fields that `itervar` has of it;

then log2(x + 1) of the additions, multiplications and divisions of one execution, and of the bytes
of each buffer that the statement touches.

Source:   Chen et al., AutoTVM, NeurIPS 2018, section 3.1 and appendix (TreeGRU).
"""

from __future__ import annotations

import numpy as np

from tensorwright.tuning.features.cell_tables import Features
from tensorwright.tuning.features.loops.loop_arrays import LOOPS, OPERATIONS, LoopArrays
from tensorwright.tuning.features.names import BUFFERS
from tensorwright.tuning.features.sets.itervar import LOOP_FIELDS, loop_rows

TREE_FIELDS: tuple[str, ...] = ("is_there", "first_statement", *LOOP_FIELDS)
LEAF_FIELDS: tuple[str, ...] = (
    *OPERATIONS,
    *(f"buffer{buffer}_bytes" for buffer in range(BUFFERS)),
)
LOOP_TREE_COLUMNS: tuple[str, ...] = (
    *(f"loop{loop}_{field}" for loop in range(LOOPS) for field in TREE_FIELDS),
    *LEAF_FIELDS,
)


def loop_tree(loops: LoopArrays) -> Features:
    """(statements, columns, n), the columns in the order of `LOOP_TREE_COLUMNS`."""
    place = np.stack([loops.is_there, loops.first], axis=2, dtype=np.float32)
    rows = np.concatenate([place, loop_rows(loops)], axis=2)
    leaf = np.log2(np.concatenate([loops.operations, loops.nbytes], axis=1) + 1)
    return np.concatenate([rows.reshape(len(rows), -1, rows.shape[-1]), leaf], axis=1)
