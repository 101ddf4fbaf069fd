"""Many calls of a function that TVM compiled, in one native loop: Python's time does not count.

It is called by TVM's own way for programs in C, `TVMFFIFunctionCall` (tvm/ffi/c_api.h): a table has
a row of arguments for each call, 16 bytes each: the type of the argument, and where it lies.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import tvm_ffi

from tensorwright.runtime import LoadedObject, load_ir

_TENSOR = 70  # kTVMFFITensor
_IR = """
define i32 @tw_tvm_calls(ptr %call, ptr %function, ptr %table, i64 %row, i32 %width, i64 %rows) {
entry:
  %result = alloca [2 x i64], align 16
  br label %again
again:
  %i = phi i64 [0, %entry], [%next, %good]
  store [2 x i64] zeroinitializer, ptr %result
  %offset = mul i64 %i, %row
  %args = getelementptr i8, ptr %table, i64 %offset
  %code = call i32 %call(ptr %function, ptr %args, i32 %width, ptr %result)
  %failed = icmp ne i32 %code, 0
  br i1 %failed, label %done, label %good
good:
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %rows
  br i1 %more, label %again, label %done
done:
  %last = phi i32 [%code, %again], [0, %good]
  ret i32 %last
}
"""


class NativeCalls:
    """A function with the tensors of some calls; calling it makes all of them, in order.

    rows   the arguments of each call, as many in each; kept as long as this is
    Raises:  RuntimeError from a call of it where the function fails.
    """

    def __init__(self, function: Any, rows: Sequence[Sequence[Any]]) -> None:
        self._kept = function, rows
        self._table = np.array(
            [[(_TENSOR, each.__chandle__()) for each in row] for row in rows], np.uint64
        )
        self._code, self._run = _loop()
        self._numbers = (
            _entry(),
            function.__chandle__(),
            self._table.ctypes.data,
            self._table.strides[0],
            self._table.shape[1],
            self._table.shape[0],
        )

    def __call__(self) -> None:
        """Make all calls."""
        code = self._run(*self._numbers)
        if code:
            raise RuntimeError(f"the compiled function ended with code {code}")


@lru_cache(maxsize=1)
def _entry() -> int:
    """The address of TVM's function that calls functions."""
    library = ctypes.CDLL(tvm_ffi.libinfo.find_libtvm_ffi())
    return ctypes.cast(library.TVMFFIFunctionCall, ctypes.c_void_p).value or 0


@lru_cache(maxsize=1)
def _loop() -> tuple[LoadedObject, Any]:
    """The loop, compiled once in each process; the code keeps it in memory."""
    code = load_ir(_IR, ("tw_tvm_calls",))
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    kind = ctypes.CFUNCTYPE(
        ctypes.c_int32, pointer, pointer, pointer, number, ctypes.c_int32, number
    )
    return code, kind(code.address("tw_tvm_calls"))
