"""The features of loops one after the other, the innermost first.

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
"""

from __future__ import annotations

from tensorwright.tuning.features.operations import BUFFERS
from tensorwright_lab.feature_sets import loop_kernel
from tensorwright_lab.feature_sets.native_text import Array, NativeText, Number

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


def _write(code: NativeText, loops: loop_kernel.LoopsInCode, row: Array) -> None:
    with code.loop(loops.depth) as k:
        write_loop(code, loops, k, row.part(k * len(LOOP_FIELDS)))
    for n in range(len(loop_kernel.OPERATIONS)):
        row[loop_kernel.LOOPS * len(LOOP_FIELDS) + n] = code.log2(loops.operations[n] + 1.0)


def write_loop(code: NativeText, loops: loop_kernel.LoopsInCode, k: Number, row: Array) -> None:
    """The fields of a loop, counted from the innermost, into a row that is 0."""
    row[0] = code.log2(loops.length[k] + 1.0)
    row[1] = code.as_float(loops.depth - k)
    row[2] = code.log2(loops.topdown[k] + 1.0)
    row[3] = code.log2(loops.bottomup[k] + 1.0)
    row[loops.kind[k] + (len(_OWN_FIELDS) - len(loop_kernel.KINDS))] = 1.0
    with code.loop(loops.buffers) as buffer:
        touches = (loops.stride, loops.period, loops.count, loops.reuse)
        for field, array in enumerate(touches, len(_OWN_FIELDS)):
            quantity = array[buffer * loop_kernel.LOOPS + k]
            with code.when(quantity > 0.0):
                index = buffer * len(_TOUCH_FIELDS) + field
                row[index] = code.log2(quantity + 1.0)


ITERVAR = loop_kernel.LoopFormula(len(ITERVAR_COLUMNS), _write)
