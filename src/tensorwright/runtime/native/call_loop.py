"""A native loop that calls a kernel, so that Python's time between calls does not count."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from tensorwright.runtime.native.jit import LoadedObject, load_ir

_IR = """
define void @tw_repeat(ptr %kernel, ptr %table, i64 %row, i64 %rows, i64 %first, ptr %workspace,
                       i32 %threads, i64 %count) {
entry:
  br label %again
again:
  %i = phi i64 [0, %entry], [%next, %again]
  %at = phi i64 [%first, %entry], [%after, %again]
  %offset = mul i64 %at, %row
  %args = getelementptr i8, ptr %table, i64 %offset
  call void %kernel(ptr %args, ptr %workspace, i32 %threads)
  %up = add i64 %at, 1
  %wraps = icmp eq i64 %up, %rows
  %after = select i1 %wraps, i64 0, i64 %up
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %again, label %done
done:
  ret void
}
"""


@dataclass(frozen=True, slots=True)
class CallLoop:
    """The compiled loop; `code` keeps it in memory.

    run(kernel, table, row_bytes, rows, first, workspace, threads, count) calls the kernel `count`
    times.  Each row of the table holds the addresses of the arguments of one call; they take turns
    from row `first` on.
    """

    code: LoadedObject
    run: Callable[..., None]


@lru_cache(maxsize=1)
def call_loop() -> CallLoop:
    """The loop, compiled once in each process."""
    code = load_ir(_IR, ("tw_repeat",))
    pointer = ctypes.c_void_p
    number = ctypes.c_int64
    kind = ctypes.CFUNCTYPE(
        None, pointer, pointer, number, number, number, pointer, ctypes.c_int32, number
    )
    return CallLoop(code, kind(code.address("tw_repeat")))
