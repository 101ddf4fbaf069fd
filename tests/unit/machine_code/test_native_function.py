"""Functions written with numbers, loops and branches do what Python does, here and elsewhere."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorwright.base import cpu_target
from tensorwright.machine_code import Kind, Module, NativeFunction, Number, vector_type
from tensorwright.machine_code.compilation import compile_module
from tensorwright.runtime import load_function
from tensorwright.runtime.native import driver

NEON = cpu_target("aarch64-neon")

Write = Callable[[NativeFunction, Number, Number], None]


def _function(write: Write) -> NativeFunction:
    function = NativeFunction(Module(), "f", (Kind.POINTER, Kind.I64))
    write(function, *function.parameters)
    function.finish()
    return function


def _run(function: NativeFunction, array: np.ndarray[Any, Any], number: int) -> None:
    loaded = load_function(function)
    loaded.run(array.ctypes.data, number)


def _integers(write: Write, number: int, size: int = 8) -> list[int]:
    """What a function writes into an array of zeros."""
    result = np.zeros(size, np.int64)
    _run(_function(write), result, number)
    return result.tolist()


def test_a_loop_runs_from_first_to_stop_by_steps() -> None:
    def write(function: NativeFunction, result: Number, stop: Number) -> None:
        count = function.variable(Kind.I64, 0)
        with function.loop(stop, first=3, step=2) as n:
            result.array(Kind.I64)[count.now] = n
            count.set(count.now + 1)

    for stop in (0, 3, 4, 9):
        expected = list(range(3, stop, 2))
        assert _integers(write, stop)[: len(expected) + 1] == [*expected, 0]


def test_a_branch_has_another_side_or_none() -> None:
    def write(function: NativeFunction, result: Number, x: Number) -> None:
        numbers = result.array(Kind.I64)
        with function.when(x > 2):
            numbers[0] = 1
        with function.when(x < 2) as otherwise:
            with function.when(x < 0) as positive:
                numbers[1] = -1
            with positive():
                numbers[1] = 1
        with otherwise():
            numbers[1] = 2

    assert [_integers(write, x)[:2] for x in (-1, 1, 3)] == [[0, -1], [0, 1], [1, 2]]


def test_a_switch_does_what_belongs_to_a_number() -> None:
    def write(function: NativeFunction, result: Number, x: Number) -> None:
        for n in function.switch(x, 3):
            result.array(Kind.I64)[0] = 10 * n + 1
        result.array(Kind.I64)[1] = 5

    assert [_integers(write, x)[:2] for x in range(-1, 4)] == [[v, 5] for v in (0, 1, 11, 21, 0)]


def test_integers_mix_with_those_of_python() -> None:
    def write(_: NativeFunction, result: Number, x: Number) -> None:
        numbers = result.array(Kind.I64)
        values = x + 1, x - 1, x * 3, x & 6, x | 8, x << 2, x >> 1, x.apply("xor", 5)
        for n, value in enumerate(values):
            numbers[n] = value
        for n, value in enumerate((x.smaller(4), x.larger(9), x.equals(7).choose(x, 1))):
            numbers.part(8)[n] = value

    assert _integers(write, 7, 11) == [8, 6, 21, 6, 15, 28, 3, 2, 4, 9, 7]


def test_vectors_of_floats() -> None:
    def write(function: NativeFunction, result: Number, count: Number) -> None:
        numbers = result.array(Kind.F64)
        with function.loop(count, step=4) as n:
            x = numbers.vector(n, 4)
            root = (-x).intrinsic("fabs").intrinsic("sqrt")
            numbers[n] = (x < 0.0).choose(root / 2.0, root * x + 1.0)

    given = np.array([-4.0, 4.0, 9.0, -16.0, 0.0, 1.0, 2.25, -1.0])
    result = given.copy()
    _run(_function(write), result, 8)
    root = np.sqrt(np.abs(given))
    np.testing.assert_array_equal(result, np.where(given < 0, root / 2, root * given + 1))


def test_functions_call_each_other_by_name_and_by_pointer() -> None:
    module = Module()
    double = NativeFunction(module, "double", (Kind.I64,), Kind.I64, is_internal=True)
    (x,) = double.parameters
    double.finish(x + x)
    function = NativeFunction(module, "f", (Kind.POINTER, Kind.I64))
    result, x = function.parameters
    numbers = result.array(Kind.I64)
    numbers[0] = function.call(Kind.I64, double, x)
    numbers[1] = function.call(Kind.I64, function.address_of(double), numbers[0])
    function.do("llvm.memset.p0.i64", numbers.address(2), function.number(1, Kind.I8), *_sizes(x))
    function.finish()
    written = np.zeros(4, np.int64)
    _run(function, written, 3)
    assert written.tolist() == [6, 12, 0x010101, 0]


def _sizes(count: Number) -> tuple[Number, Number]:
    return count, NativeFunction(Module(), "g").number(0, Kind.TRUTH)


def test_a_name_from_outside_is_declared_once() -> None:
    function = NativeFunction(Module(), "f", (Kind.F32,), Kind.F32)
    (x,) = function.parameters
    once = function.call(Kind.F32, "sinf", x, note="nounwind")
    function.finish(function.call(Kind.F32, "sinf", once, note="nounwind"))
    assert function.module.text().count("declare float @sinf(float) nounwind") == 1


def test_the_text_is_for_other_processors_too() -> None:
    assert compile_module(driver.driver_module(NEON.arch).text(), NEON)[:4] == b"\x7fELF"


def test_variables_hold_vectors() -> None:
    kind = vector_type(Kind.F32, 4)

    def write(function: NativeFunction, result: Number, count: Number) -> None:
        total = function.variable(kind, 1.5)
        with function.loop(count):
            total.set(total.now + 1.0)
        result.array(Kind.F32)[0] = total.now.lane(3)

    result = np.zeros(1, np.float32)
    _run(_function(write), result, 3)
    assert result.tolist() == [4.5]
