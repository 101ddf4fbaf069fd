"""The element types of tensors.

bf16 has no NumPy type of its own; ml_dtypes, which the onnx package depends on, brings one. Where
it is not installed, arrays of bf16 have the type V2: two bytes without a meaning.
"""

from __future__ import annotations

import importlib
from enum import Enum
from importlib.util import find_spec

import numpy as np

from tensorwright.base.errors import UsageError, unknown_name

_BF16 = importlib.import_module("ml_dtypes").bfloat16 if find_spec("ml_dtypes") else "V2"


class DType(Enum):
    """An element type. `str(DType.F32) == "f32"`, and `DType.parse` is the inverse."""

    __hash__ = object.__hash__  # a member is one object; Enum hashes its name, each time in Python

    F16 = "f16"
    BF16 = "bf16"
    F32 = "f32"
    F64 = "f64"
    I8 = "i8"
    I16 = "i16"
    I32 = "i32"
    I64 = "i64"
    U8 = "u8"
    U16 = "u16"
    U32 = "u32"
    U64 = "u64"
    BOOL = "bool"

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy type with the same bytes."""
        return _NUMPY[self]

    @property
    def size_bytes(self) -> int:
        """Bytes of one element; a bool takes one."""
        return _NUMPY[self].itemsize

    @property
    def is_float(self) -> bool:
        """True for f16, bf16, f32 and f64."""
        return self in _FLOATS

    @property
    def is_signed(self) -> bool:
        """True for floats and for signed integers."""
        return self.is_float or self.value.startswith("i")

    @property
    def is_int(self) -> bool:
        """True for signed and unsigned integers; a bool is not an integer."""
        return not self.is_float and self is not DType.BOOL

    @property
    def lowest(self) -> float | int | bool:
        """The value below all others: minus infinity for floats."""
        if self.is_float:
            return float("-inf")
        if self is DType.BOOL:
            return False
        return -(1 << (8 * self.size_bytes - 1)) if self.is_signed else 0

    @property
    def highest(self) -> float | int | bool:
        """The value above all others: infinity for floats."""
        if self.is_float:
            return float("inf")
        if self is DType.BOOL:
            return True
        return (1 << (8 * self.size_bytes - self.is_signed)) - 1

    @classmethod
    def parse(cls, text: str) -> DType:
        """Read a name such as "f32".

        Raises:  UsageError for any other text.
        """
        try:
            return cls(text)
        except ValueError:
            where, names = f"dtype {text!r}", (member.value for member in cls)
            raise unknown_name("base", where, "no such element type", text, names) from None

    @classmethod
    def from_numpy(cls, dtype: np.typing.DTypeLike) -> DType:
        """The element type of a NumPy dtype; byte order is not part of it.

        Raises:  UsageError for a type that tensors cannot have (complex, object, text, ...).
        """
        element_type = _FROM_NUMPY.get(np.dtype(dtype).newbyteorder("="))
        if element_type is None:
            raise UsageError(
                stage="base",
                where=f"NumPy type {np.dtype(dtype)}",
                reason="tensors cannot hold it",
                remedy="convert to one of " + ", ".join(member.value for member in cls),
            )
        return element_type

    def __str__(self) -> str:
        return str(self.value)

    def __repr__(self) -> str:
        return f"DType.{self.name}"


_NUMPY: dict[DType, np.dtype[np.generic]] = {
    DType.F16: np.dtype(np.float16),
    DType.BF16: np.dtype(_BF16),
    DType.F32: np.dtype(np.float32),
    DType.F64: np.dtype(np.float64),
    DType.I8: np.dtype(np.int8),
    DType.I16: np.dtype(np.int16),
    DType.I32: np.dtype(np.int32),
    DType.I64: np.dtype(np.int64),
    DType.U8: np.dtype(np.uint8),
    DType.U16: np.dtype(np.uint16),
    DType.U32: np.dtype(np.uint32),
    DType.U64: np.dtype(np.uint64),
    DType.BOOL: np.dtype(np.bool_),
}
_FROM_NUMPY = {dtype: member for member, dtype in _NUMPY.items()}
_FLOATS = frozenset({DType.F16, DType.BF16, DType.F32, DType.F64})
