"""How types, constants and values in registers are written in LLVM's text."""

from __future__ import annotations

from typing import NamedTuple

from tensorwright.base import DType
from tensorwright.machine_code import float_literal, vector_type

_REGISTER = {
    DType.F16: "float",  # 16-bit floats are computed in f32 and rounded after each operation
    DType.BF16: "float",
    DType.F32: "float",
    DType.F64: "double",
    DType.BOOL: "i1",
}
_MEMORY = {DType.F16: "half", DType.BF16: "i16", DType.BOOL: "i8"}


class Val(NamedTuple):
    """A value in registers: the name of an SSA value or a literal; one lane is a scalar."""

    name: str
    dtype: DType
    lanes: int = 1

    @property
    def is_literal(self) -> bool:
        """True for a constant."""
        return not self.name.startswith("%")


def register_element(dtype: DType) -> str:
    """The LLVM type that an element has in registers."""
    return _REGISTER.get(dtype) or f"i{dtype.size_bytes * 8}"


def memory_element(dtype: DType) -> str:
    """The LLVM type that an element has in memory."""
    return _MEMORY.get(dtype) or register_element(dtype)


def register_type(dtype: DType, lanes: int) -> str:
    """The LLVM type of a number of lanes in registers."""
    return vector_type(register_element(dtype), lanes)


def memory_type(dtype: DType, lanes: int) -> str:
    """The LLVM type of a number of lanes in memory."""
    return vector_type(memory_element(dtype), lanes)


def literal_text(value: float | int | bool, dtype: DType) -> str:
    """A constant of a dtype as LLVM text."""
    if dtype is DType.BOOL:
        return "true" if value else "false"
    if dtype.is_float:
        return float_literal(float(value), DType.F64 if dtype is DType.F64 else DType.F32)
    bits = dtype.size_bytes * 8
    wrapped = int(value) & ((1 << bits) - 1)
    return str(wrapped - (1 << bits) if wrapped >> (bits - 1) else wrapped)


def scalar_literal(value: Val) -> str | None:
    """The literal in every lane of a constant, or None."""
    if value.is_literal and not value.name.startswith("<"):
        return value.name.removeprefix("splat (").rstrip(")").split(" ")[-1]
    return None


def wrapped_literal(active: range, lanes: int) -> str:
    """A constant mask as LLVM text."""
    return "<" + ", ".join(f"i1 {'true' if k in active else 'false'}" for k in range(lanes)) + ">"
