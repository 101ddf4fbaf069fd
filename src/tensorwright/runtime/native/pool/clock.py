"""Time in native functions: the monotonic clock, and the clocks of threads."""

from __future__ import annotations

import time

from tensorwright.machine_code import Kind, Module, NativeFunction, Number

_MONOTONIC = getattr(time, "CLOCK_MONOTONIC", 1)
_NANOSECONDS = 1_000_000_000


class Clock:
    """A function of a module that reads a clock of POSIX's clock_gettime, in nanoseconds."""

    def __init__(self, module: Module) -> None:
        self._read = NativeFunction(module, "read_clock", (Kind.I32,), Kind.I64, is_internal=True)
        function = self._read
        seconds_ns = function.array(Kind.I64, 2)
        function.call(Kind.I32, "clock_gettime", function.parameters[0], seconds_ns.pointer)
        function.finish(seconds_ns[0] * _NANOSECONDS + seconds_ns[1])

    def now(self, function: NativeFunction) -> Number:
        """The monotonic clock."""
        kind = function.number(_MONOTONIC, Kind.I32)
        return function.call(Kind.I64, self._read, kind)

    def of_thread(self, function: NativeFunction, clock: Number) -> Number:
        """How long a thread has run, by the number of its clock."""
        return function.call(Kind.I64, self._read, clock.cast("trunc", Kind.I32))
