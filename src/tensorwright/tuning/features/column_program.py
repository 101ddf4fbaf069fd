"""Programs of arithmetic on columns, run by a small interpreter in native code.

A program is a table of steps (operation, three operands, result), each a register: a row of
`LANES` numbers.  It runs on so many candidates at a time, whose registers stay in the second cache;
a step takes some nanoseconds, where a call of NumPy takes a microsecond.

    load    register <- a row of the inputs        store   a row of the outputs <- register
    others  register <- operation(registers)       8-byte floats, divisors are not zero
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.runtime import LoadedObject, load_ir

LANES = 32  # candidates at a time
_VECTOR = 8

ADD, SUBTRACT, MULTIPLY, DIVIDE, FLOOR, MINIMUM, MAXIMUM, ABSOLUTE, ABOVE, SAME, CHOOSE = range(11)
_LOAD, _STORE = 11, 12

_TWO = {ADD: "fadd", SUBTRACT: "fsub", MULTIPLY: "fmul", DIVIDE: "fdiv"}
_CALL = {FLOOR: "floor", ABSOLUTE: "fabs"}
_SMALLER_OR = {MINIMUM: "ole", MAXIMUM: "oge"}
_FLAG = {ABOVE: "ogt", SAME: "oeq"}

_IR = """
declare <8 x double> @llvm.floor.v8f64(<8 x double>)
declare <8 x double> @llvm.fabs.v8f64(<8 x double>)

define void @tw_columns(ptr %steps, i64 %count, ptr %registers, ptr %inputs, ptr %outputs,
                        i64 %candidates) {{
entry:
  br label %block
block:
  %first = phi i64 [0, %entry], [%first.next, %block.end]
  %left = sub i64 %candidates, %first
  %is.last = icmp slt i64 %left, {lanes}
  %lanes = select i1 %is.last, i64 %left, i64 {lanes}
  %in = getelementptr double, ptr %inputs, i64 %first
  %out = getelementptr double, ptr %outputs, i64 %first
  br label %step
step:
  %n = phi i64 [0, %block], [%n.next, %step.end]
  %at = getelementptr [5 x i32], ptr %steps, i64 %n
  %operation = load i32, ptr %at
{operands}
{rows}
  switch i32 %operation, label %step.end [
{cases}
  ]
{bodies}
step.end:
  %n.next = add i64 %n, 1
  %more.steps = icmp slt i64 %n.next, %count
  br i1 %more.steps, label %step, label %block.end
block.end:
  %first.next = add i64 %first, {lanes}
  %more = icmp slt i64 %first.next, %candidates
  br i1 %more, label %block, label %done
done:
  ret void
}}
"""
_NEEDED_IR = """
define void @tw_needed(ptr %origins, i64 %count, ptr %is.needed) {{
entry:
  br label %register
register:
  %left = phi i64 [%count, %entry], [%n, %next]
  %n = sub i64 %left, 1
  %at = getelementptr [4 x i32], ptr %origins, i64 %n
  %operation = load i32, ptr %at
  %is.step = icmp sge i32 %operation, 0
  %mark.at = getelementptr i8, ptr %is.needed, i64 %n
  %mark = load i8, ptr %mark.at
  %is.marked = icmp ne i8 %mark, 0
  %is.used = and i1 %is.step, %is.marked
  br i1 %is.used, label %operands, label %next
operands:
{operands}
  br label %next
next:
  %more = icmp sgt i64 %n, 0
  br i1 %more, label %register, label %done
done:
  ret void
}}
"""
_MARK = """\
  %o{k}.at = getelementptr i32, ptr %at, i64 {k}
  %o{k} = load i32, ptr %o{k}.at
  %o{k}.8 = zext i32 %o{k} to i64
  %m{k} = getelementptr i8, ptr %is.needed, i64 %o{k}.8
  store i8 1, ptr %m{k}"""
_OPERAND = """\
  %{name}.at = getelementptr i32, ptr %at, i64 {place}
  %{name}.4 = load i32, ptr %{name}.at
  %{name}.8 = zext i32 %{name}.4 to i64
  %{name}.row = mul i64 %{name}.8, {lanes}
  %{name} = getelementptr double, ptr %registers, i64 %{name}.row
  %{name}.far = mul i64 %{name}.8, %candidates"""
_ROWS = """\
  %source = getelementptr double, ptr %in, i64 %a.far
  %target = getelementptr double, ptr %out, i64 %to.far"""
_LOOP = """\
do{n}:
  %j{n} = phi i64 [0, %step], [%j{n}.next, %do{n}]
{body}
  %j{n}.next = add i64 %j{n}, 8
  %more{n} = icmp slt i64 %j{n}.next, %lanes
  br i1 %more{n}, label %do{n}, label %step.end"""
_READ = """\
  %{to}{n}.at = getelementptr double, ptr %{row}, i64 %j{n}
  %{to}{n} = load <8 x double>, ptr %{to}{n}.at, align 8"""
_WRITE = """\
  %w{n}.at = getelementptr double, ptr %{row}, i64 %j{n}
  store <8 x double> %{value}{n}, ptr %w{n}.at, align 8"""


class ColumnProgram:
    """The steps that compute some columns; immutable.

    names    of the inputs, in the order in which they are loaded
    numbers  what the registers after these hold from the start
    steps    (steps, 5): operation, operands, result; registers are counted from 0
    """

    __slots__ = ("_names", "_numbers", "_registers", "_results", "_steps")

    def __init__(
        self,
        names: tuple[str, ...],
        numbers: NDArray[np.float64],
        steps: NDArray[np.int32],
        wanted: NDArray[np.int32],
    ) -> None:
        self._names = names
        self._numbers = numbers
        self._registers = len(names) + len(numbers) + len(steps)
        self._results = len(wanted)
        loads = np.zeros((len(names), 5), np.int32)
        loads[:, 0] = _LOAD
        loads[:, 1] = loads[:, 4] = np.arange(len(names))
        stores = np.zeros((len(wanted), 5), np.int32)
        stores[:, 0] = _STORE
        stores[:, 1] = wanted
        stores[:, 4] = np.arange(len(wanted))
        self._steps = np.concatenate([loads, steps, stores])

    def __len__(self) -> int:
        return len(self._steps) - len(self._names) - self._results

    def run(self, columns: Mapping[str, NDArray[Any]], count: int) -> NDArray[np.float64]:
        """The results for so many candidates, whose decisions are given: (results, count)."""
        padded = -(-count // _VECTOR) * _VECTOR
        inputs = np.zeros((len(self._names), padded))
        for row, name in zip(inputs, self._names, strict=True):
            row[:count] = columns[name]
        registers = np.empty((self._registers, LANES))
        first = len(self._names)
        registers[first : first + len(self._numbers)] = self._numbers[:, None]
        outputs = np.empty((self._results, padded))
        if len(self._steps) and padded:
            _, run = _compiled()
            run(
                self._steps.ctypes.data,
                len(self._steps),
                registers.ctypes.data,
                inputs.ctypes.data,
                outputs.ctypes.data,
                padded,
            )
        return outputs[:, :count]


def needed_for(origins: NDArray[np.int32], results: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which registers some results depend on, those of the results with them: (registers,).

    Shapes:  origins (registers, 4): what each holds, an operation and the registers of its
             operands, which come before it, or below 0: no operation
    """
    is_needed = np.zeros(len(origins), np.bool_)
    is_needed[results] = True
    _, mark = _compiled_needed()
    mark(origins.ctypes.data, len(origins), is_needed.ctypes.data)
    return is_needed


@lru_cache(maxsize=1)
def _compiled_needed() -> tuple[LoadedObject, Callable[..., None]]:
    """The walk from the last register to the first, compiled once in each process."""
    text = _NEEDED_IR.format(operands="\n".join(_MARK.format(k=k) for k in (1, 2, 3)))
    code = load_ir(text, ("tw_needed",))
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    function = ctypes.CFUNCTYPE(None, pointer, number, pointer)
    return code, function(code.address("tw_needed"))


@lru_cache(maxsize=1)
def _compiled() -> tuple[LoadedObject, Callable[..., None]]:
    """The interpreter, compiled once in each process."""
    operands = ("a", "b", "c", "to")
    text = _IR.format(
        lanes=LANES,
        operands="\n".join(
            _OPERAND.format(name=name, place=place, lanes=LANES)
            for place, name in enumerate(operands, 1)
        ),
        rows=_ROWS,
        cases="\n".join(f"    i32 {n}, label %do{n}" for n in range(_STORE + 1)),
        bodies="\n".join(map(_body, range(_STORE + 1))),
    )
    code = load_ir(text, ("tw_columns",))
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    arguments = (pointer, number, pointer, pointer, pointer, number)
    return code, ctypes.CFUNCTYPE(None, *arguments)(code.address("tw_columns"))


def _body(n: int) -> str:
    """The loop over the lanes for one operation."""
    source = "source" if n == _LOAD else "a"
    target = "target" if n == _STORE else "to"
    operands = (("x", source), ("y", "b"), ("z", "c"))[: _operands_of(n)]
    reads = [_READ.format(to=to, row=row, n=n) for to, row in operands]
    formula = _formula(n)
    body = [*reads, *formula, _WRITE.format(row=target, value="r" if formula else "x", n=n)]
    return _LOOP.format(n=n, body="\n".join(body))


def _operands_of(n: int) -> int:
    if n == CHOOSE:
        return 3
    return 1 if n in _CALL or n in (_LOAD, _STORE) else 2


def _formula(n: int) -> tuple[str, ...]:
    """What makes %r of the operands %x, %y, %z."""
    kind = "<8 x double>"
    if n in _TWO:
        return (f"  %r{n} = {_TWO[n]} {kind} %x{n}, %y{n}",)
    if n in _CALL:
        return (f"  %r{n} = call {kind} @llvm.{_CALL[n]}.v8f64({kind} %x{n})",)
    if n in _FLAG:
        test = f"  %is{n} = fcmp {_FLAG[n]} {kind} %x{n}, %y{n}"
        return test, f"  %r{n} = uitofp <8 x i1> %is{n} to {kind}"
    if n in _SMALLER_OR:
        test = f"  %is{n} = fcmp {_SMALLER_OR[n]} {kind} %x{n}, %y{n}"
        return test, f"  %r{n} = select <8 x i1> %is{n}, {kind} %x{n}, {kind} %y{n}"
    if n == CHOOSE:
        test = f"  %is{n} = fcmp une {kind} %x{n}, zeroinitializer"
        return test, f"  %r{n} = select <8 x i1> %is{n}, {kind} %y{n}, {kind} %z{n}"
    return ()  # a copy
