"""The tree of loops, for a model that reads it loop by loop (`tree_gru.py`).

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

from tensorwright.tuning.features.operations import BUFFERS
from tensorwright_lab.feature_sets.itervar import LOOP_FIELDS, write_loop
from tensorwright_lab.feature_sets.loop_kernel import LOOPS, OPERATIONS, LoopFormula, LoopsInCode
from tensorwright_lab.feature_sets.native_text import Array, NativeText

TREE_FIELDS: tuple[str, ...] = ("is_there", "first_statement", *LOOP_FIELDS)
LEAF_FIELDS: tuple[str, ...] = (
    *OPERATIONS,
    *(f"buffer{buffer}_bytes" for buffer in range(BUFFERS)),
)
LOOP_TREE_COLUMNS: tuple[str, ...] = (
    *(f"loop{loop}_{field}" for loop in range(LOOPS) for field in TREE_FIELDS),
    *LEAF_FIELDS,
)


def _write(code: NativeText, loops: LoopsInCode, row: Array) -> None:
    with code.loop(loops.depth) as k:
        own = row.part((loops.depth - (k + 1)) * len(TREE_FIELDS))
        own[0] = 1.0
        own[1] = code.as_float(loops.first[k])
        write_loop(code, loops, k, own.part(2))
    leaf = LOOPS * len(TREE_FIELDS)
    for n in range(len(OPERATIONS)):
        row[leaf + n] = code.log2(loops.operations[n] + 1.0)
    for buffer in range(BUFFERS):
        row[leaf + len(OPERATIONS) + buffer] = code.log2(loops.nbytes[buffer] + 1.0)


LOOP_TREES = LoopFormula(len(LOOP_TREE_COLUMNS), _write)
