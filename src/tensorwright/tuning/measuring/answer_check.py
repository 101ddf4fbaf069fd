"""Whether an answer is right: its allowed error, and memory that a kernel may not write."""

from __future__ import annotations

import math

import numpy as np

from tensorwright.base import DType
from tensorwright.expr import Array
from tensorwright.runtime import HOST, Device, Memory, empty

_TOLERANCE = {DType.F64: 1e-10, DType.F32: 1e-4, DType.F16: 1e-2, DType.BF16: 4e-2}
_GUARD_BYTES = 4096
_UNWRITTEN = 0xFF  # NaN for floats


class Guarded:
    """An output with zones before and after it that a kernel may not write.

    memory   of the output on the device     array   its content at the last `is_intact`
    """

    def __init__(self, shape: tuple[int, ...], dtype: DType, device: Device = HOST) -> None:
        size = math.prod(shape) * dtype.size_bytes
        room = -(-size // 64) * 64 + 2 * _GUARD_BYTES
        self._device = device
        self._copy = empty((room,), DType.U8)
        self._end = _GUARD_BYTES + size
        self.array: Array = np.ndarray(shape, dtype.numpy, self._copy.data, _GUARD_BYTES)
        self._room = device.allocate(room)
        self.memory = Memory(self._room.address + _GUARD_BYTES, size, self._room)
        self.clear()

    def clear(self) -> None:
        """Fill it with the value of unwritten memory."""
        self._copy[...] = _UNWRITTEN
        self._device.copy_in(self._copy, self._room)

    def is_intact(self) -> bool:
        """Whether the zones are unchanged."""
        self._device.copy_out(self._room, self._copy)
        zones = (self._copy[:_GUARD_BYTES], self._copy[self._end :])
        return all(bool((zone == _UNWRITTEN).all()) for zone in zones)


def allowed_error(answer: Array, dtype: DType, has_floats: bool) -> Array:
    """How far each element may be from the answer, by broadcasting; `dtype` is that of the kernel.

    Floats: a share of the element itself, and of the usual element of this answer. Integers are
    exact, except 8 bits that were rounded from floats: these may differ by one.
    """
    if not dtype.is_float:
        return np.array(1 if has_floats and dtype.is_int and dtype.size_bytes == 1 else 0)
    wide = answer if answer.dtype.itemsize >= 4 else answer.astype(np.float32)
    size = np.asarray(np.abs(wide))  # NumPy makes the only element of a scalar a number
    finite = size[np.isfinite(size)]
    size = np.nan_to_num(size, copy=False, nan=0.0, posinf=0.0)
    usual = float(np.quantile(finite, 0.9)) if finite.size else 0.0
    usual = usual or (float(finite.max()) if finite.size else 0.0)
    allowed: Array = _TOLERANCE[dtype] * (size + size.dtype.type(usual))
    return allowed


def find_difference(result: Array, answer: Array, allowed: Array) -> str:
    """The difference of a result from its answer, for a person; "" if it is allowed."""
    wide = np.float64 if answer.dtype.kind in "iub" else answer.dtype
    if answer.dtype.kind == "b":
        result = result.view(np.uint8)
        answer = answer.view(np.uint8)
    result = result.astype(wide, copy=False)
    answer = answer.astype(wide, copy=False)
    with np.errstate(all="ignore"):
        error = np.abs(result - answer)
        is_right = (error <= allowed) | (result == answer) | (np.isnan(result) & np.isnan(answer))
    if is_right.all():
        return ""
    wrong = np.argwhere(~is_right)
    index = tuple(int(i) for i in wrong[0])
    share = 100 * len(wrong) / max(1, answer.size)
    return (
        f"{len(wrong)} elements ({share:.3g} %) are wrong, first at {list(index)}: "
        f"{result[index]} and not {answer[index]}"
    )
