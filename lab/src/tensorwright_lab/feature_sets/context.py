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

from collections.abc import Mapping

from tensorwright.schedule import ForKind
from tensorwright.tuning.features.operations import BUFFERS
from tensorwright_lab.feature_sets import loop_kernel
from tensorwright_lab.feature_sets.native_text import FLOAT, Array, NativeText, Number

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


def _write(code: NativeText, loops: loop_kernel.LoopsInCode, row: Array) -> None:
    logs = {name: code.array(FLOAT, loop_kernel.LOOPS) for name in ("topdown", "bottomup", *_MARKS)}
    with code.loop(loops.depth) as k:
        logs["topdown"][k] = code.log2(loops.topdown[k] + 1.0)
        logs["bottomup"][k] = code.log2(loops.bottomup[k] + 1.0)
        length = code.log2(loops.length[k] + 1.0)
        for name, kind in _MARKS.items():
            number = loop_kernel.KINDS.index(kind)
            is_other = (loops.kind[k] < number) | (loops.kind[k] > number)
            logs[name][k] = code.choose(is_other, 0.0, length, FLOAT)
    with code.loop(loops.buffers) as buffer, code.when(loops.nbytes[buffer] > 0.0):
        own_row = row.part(buffer * _PER_BUFFER)
        with code.loop(loops.depth) as k:
            index = buffer * loop_kernel.LOOPS + k
            own = {
                "reuse": code.log2(loops.reuse[index] + 1.0),
                "stride": code.log2(loops.stride[index] + 1.0),
                **{name: array[k] for name, array in logs.items()},
            }
            for where, name in enumerate(_WHERE):
                reached = loops.count[index] if name == "count" else loops.topdown[k]
                _raise(code, own_row.part(where * len(THRESHOLDS)), own, reached)
        for column in range(0, _PER_BUFFER, len(THRESHOLDS)):
            _spread(code, own_row.part(column))
    _write_counts(code, loops, row.part(BUFFERS * _PER_BUFFER))


def _raise(code: NativeText, row: Array, own: Mapping[str, Number], reached: Number) -> None:
    """Note a loop's quantities at the first threshold that it is below."""
    t = code.half(code.exponent(code.larger(reached, 1.0))) + 1
    with code.when(t < len(THRESHOLDS)):
        for index, name in enumerate(_WHAT):
            column = t + index * len(_WHERE) * len(THRESHOLDS)
            row[column] = code.larger(row[column], own[name])


def _spread(code: NativeText, row: Array) -> None:
    """Take the running maximum over thresholds: a value below one is below those after it."""
    most = code.variable(FLOAT, 0.0)
    with code.loop(len(THRESHOLDS)) as t:
        most.set(code.larger(most.now, row[t]))
        row[t] = most.now


def _write_counts(code: NativeText, loops: loop_kernel.LoopsInCode, row: Array) -> None:
    for n in range(len(loop_kernel.OPERATIONS)):
        row[n] = code.log2(loops.operations[n] + 1.0)
    executions = code.variable(FLOAT, 1.0)
    with code.when(loops.depth > 0):
        executions.set(loops.topdown[0])
    row[len(loop_kernel.OPERATIONS)] = code.log2(executions.now + 1.0)
    for buffer in range(BUFFERS):
        row[len(loop_kernel.OPERATIONS) + 1 + buffer] = code.log2(loops.nbytes[buffer] + 1.0)


CONTEXT = loop_kernel.LoopFormula(len(CONTEXT_COLUMNS), _write)
