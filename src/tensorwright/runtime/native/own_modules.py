"""All code that running a network needs besides its kernels, to be compiled with the package.

A native loop that calls a kernel, so that Python's time between calls does not count.
"""

from __future__ import annotations

from functools import lru_cache

from tensorwright.base import detect_target
from tensorwright.machine_code import Kind, Module, NativeFunction
from tensorwright.runtime.native.driver import driver_module
from tensorwright.runtime.native.jit import LoadedFunction, load_function
from tensorwright.runtime.native.pool import float_state, pool_ir, set_float_state


@lru_cache(maxsize=1)
def call_loop() -> LoadedFunction:
    """The loop, loaded once in each process."""
    return load_function(call_loop_function(detect_target().arch))


def call_loop_function(arch: str) -> NativeFunction:
    """The loop before it is compiled.

    run(kernel, table, row_bytes, rows, first, workspace, threads, count, floats) calls the kernel
    `count` times, with the bits `floats` of the float state set.  Each row of the table holds the
    addresses of the arguments of one call; calls use the rows in turn, from row `first` on.
    """
    numbers = (Kind.I64,) * 3
    kinds = (Kind.POINTER, Kind.POINTER, *numbers, Kind.POINTER, Kind.I32, Kind.I64, Kind.I64)
    function = NativeFunction(Module(), "tw_repeat", kinds)
    kernel, table, row_bytes, rows, first, workspace, threads, count, bits = function.parameters
    floats = float_state(function, arch)
    set_float_state(function, arch, floats | bits)
    row = function.variable(Kind.I64, first)
    with function.loop(count):
        arguments = table.array(Kind.I8).address(row.now * row_bytes)
        function.do(kernel, arguments, workspace, threads)
        following = row.now + 1
        row.set(following.differs(rows).choose(following, 0))
    set_float_state(function, arch, floats)
    function.finish()
    return function


def own_modules(arch: str) -> tuple[str, ...]:
    """The LLVM IR of each module for an architecture."""
    return (
        driver_module(arch).text(),
        pool_ir(arch),
        call_loop_function(arch).module.text(),
    )
