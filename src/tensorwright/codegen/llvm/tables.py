"""Functions of one byte as tables of 256 bytes, which two instructions read.

    clip(round(f(y)))    ->    table[y]    where y is one of 256 whole numbers: a byte in memory, or
                                           what a number was rounded and limited to, as in
    q(sigmoid(dq(q(x))) * dq(q(x)))        where q gives codes and dq makes numbers of them again

An entry is what the evaluator gives. NaN is the least code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tensorwright import expr
from tensorwright.base import Array, DType
from tensorwright.codegen.llvm.codes import Code, code_of

_BYTES = (DType.U8, DType.I8)
_ENTRIES = 256
_LEAST_WORK = 9  # operations, which take longer than reading a table
_SIMPLE = (expr.Fn.ADD, expr.Fn.SUB, expr.Fn.MUL, expr.Fn.MIN, expr.Fn.MAX, expr.Fn.NEG)
_TWICE = (expr.Fn.DIV, expr.Fn.ROUND)  # of two simple operations each
_FUNCTION = 10  # simple operations, of exp and the like

_Sources: TypeAlias = tuple[expr.Value, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """The codes that a value has for each byte.

    source    the value that is one of 256 whole numbers: a load of a byte, or a float
    code      how the float is made, None if it is a byte
    dtype     of the entries
    least     what is added to them
    entries   their bytes, in the order of the numbers of a float, or of the bits of a byte
    """

    source: expr.Value
    code: Code | None
    dtype: DType
    least: int
    entries: bytes


def table_of(value: expr.Value, code: Code) -> Table | None:
    """The table of a code, if that depends on one byte and takes longer than reading a table."""
    sources = _sources_of(code.number, {})
    if sources is None or len(sources) != 1 or code.high - code.low >= _ENTRIES:
        return None
    (source,) = sources
    if _work(code.number, source, set()) < _LEAST_WORK:
        return None
    own = code_of(source)
    numbers = np.arange(_ENTRIES)
    if own is None:
        numbers = numbers.astype(np.uint8).view(source.dtype.numpy)
    else:
        numbers = (numbers + own.low).astype(source.dtype.numpy)
    with np.errstate(all="ignore"):
        results = _evaluated(value, {source: numbers}).astype(np.int64)
    for dtype in _BYTES:
        if dtype.lowest <= code.low and code.high <= dtype.highest:
            return Table(source, own, dtype, 0, results.astype(np.uint8).tobytes())
    return Table(source, own, DType.U8, code.low, (results - code.low).astype(np.uint8).tobytes())


def _sources_of(value: expr.Value, by_value: dict[int, _Sources | None]) -> _Sources | None:
    """The bytes on which alone a value depends, as few as can be; None if there is something else.

    A code that depends on one byte stands for no byte of its own.
    """
    if id(value) not in by_value:
        by_value[id(value)] = _new_sources_of(value, by_value)
    return by_value[id(value)]


def _new_sources_of(value: expr.Value, by_value: dict[int, _Sources | None]) -> _Sources | None:
    match value:
        case expr.Const():
            return ()
        case expr.Load(source):
            return (value,) if source.dtype in _BYTES else None
        case expr.FromIndex():
            return None
        case expr.Select(condition) if not isinstance(condition, expr.ValueExpr):
            return None
    own = code_of(value)
    sources: _Sources | None = ()
    for each in expr.children(value):
        below = _sources_of(each, by_value)
        if sources is not None:
            sources = None if below is None else tuple(dict.fromkeys((*sources, *below)))
    is_byte = own is not None and own.high - own.low < _ENTRIES
    if is_byte and (sources is None or len(sources) != 1):
        return (value,)
    return sources


def _work(value: expr.Value, source: expr.Value, seen: set[int]) -> int:
    """The simple operations of a value that a table saves; what is shared counts once."""
    if value == source or id(value) in seen:
        return 0
    seen.add(id(value))
    own = 1
    if isinstance(value, expr.Const):
        own = 0
    if isinstance(value, expr.Apply) and value.fn not in _SIMPLE:
        own = 2 if value.fn in _TWICE else _FUNCTION
    return own + sum(_work(each, source, seen) for each in expr.children(value))


def _evaluated(value: expr.Value, arrays: dict[expr.Value, Array]) -> Array:
    """A value for all numbers of what it depends on."""
    if value not in arrays:
        below = [_evaluated(each, arrays) for each in expr.children(value)]
        match value:
            case expr.Const(number, dtype):
                arrays[value] = expr.NUMPY.const(number, dtype)
            case expr.Apply(fn, args):
                arrays[value] = expr.NUMPY.apply(fn, below, args[0].dtype)
            case expr.Cast(operand, dtype):
                arrays[value] = expr.NUMPY.cast(below[0], operand.dtype, dtype)
            case _:
                arrays[value] = expr.NUMPY.select(*below)
    return arrays[value]
