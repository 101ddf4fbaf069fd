"""The features of loops one after the other, the innermost first.

For each of LOOPS loops, counted from the innermost (0 where there are fewer):

    log2(length + 1), nest level (1 for the outermost), log2(topdown + 1), log2(bottomup + 1),
    1 for the way it runs (serial, unroll, vectorize, parallel, ...), 0 for the others,
    of each buffer: log2(stride + 1), log2(period + 1), log2(count + 1), log2(reuse + 1)

and of the statement log2(additions + 1), of multiplications, of divisions of one execution: AutoTVM
notes them at the loop that they are directly in, the innermost.  The rest is defined in
`loops/loop_arrays.py`.

A column is about the loop at one place, so it says different things for different operators: a
model of these features ranks programs of workloads that are alike.

Source:   Chen et al., AutoTVM, NeurIPS 2018, appendix; tvm, src/autotvm/touch_extractor.cc.
"""

from __future__ import annotations

import numpy as np

from tensorwright.tuning.features.cell_tables import Features
from tensorwright.tuning.features.loops.loop_arrays import KINDS, LOOPS, OPERATIONS, LoopArrays
from tensorwright.tuning.features.names import BUFFERS

_OWN_FIELDS = (
    "length",
    "nest_level",
    "topdown",
    "bottomup",
    *(f"is_{kind.value.replace('.', '_')}" for kind in KINDS),
)
_TOUCH_FIELDS = ("stride", "period", "count", "reuse")
LOOP_FIELDS = (
    *_OWN_FIELDS,
    *(f"buffer{buffer}_{field}" for buffer in range(BUFFERS) for field in _TOUCH_FIELDS),
)
ITERVAR_COLUMNS: tuple[str, ...] = (
    *(f"loop{loop}_{field}" for loop in range(LOOPS) for field in LOOP_FIELDS),
    *OPERATIONS,
)


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
