"""Context relations: the features of loops in a fixed length that does not depend on the operator.

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

import numpy as np

from tensorwright.schedule import ForKind
from tensorwright.tuning.features.cell_tables import Features
from tensorwright.tuning.features.loops.loop_arrays import KINDS, OPERATIONS, LoopArrays
from tensorwright.tuning.features.names import BUFFERS

_MARKS = {"vector": ForKind.VECTOR, "unroll": ForKind.UNROLLED, "parallel": ForKind.PARALLEL}
_WHAT = ("reuse", "topdown", "bottomup", "stride", *_MARKS)
_WHERE = ("count", "topdown")
THRESHOLDS = tuple(range(0, 30, 2))
CONTEXT_COLUMNS: tuple[str, ...] = (
    *(
        f"buffer{buffer}_{what}_where_{where}_below_{threshold}"
        for buffer in range(BUFFERS)
        for what in _WHAT
        for where in _WHERE
        for threshold in THRESHOLDS
    ),
    *OPERATIONS,
    "executions",
    *(f"buffer{buffer}_bytes" for buffer in range(BUFFERS)),
)


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
    limits = np.exp2(np.array(THRESHOLDS, np.float32))
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
