"""Element types of results, by PyTorch's rules.

Tensors with dimensions rank first, then tensors without dimensions, then numbers. An operand of a
later rank counts only if its kind is higher (bool < integer < float). A float number alone is f32.
Source:  "Type promotion" in PyTorch's page on tensor attributes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tensorwright.base import DType
from tensorwright.expr import IndexExpr
from tensorwright.graph.imports.call import Attribute, Call, Tensor

_HALVES = (DType.F16, DType.BF16)


def _kind(dtype: DType) -> int:
    return 2 if dtype.is_float else 1 if dtype.is_int else 0


def joined(left: DType, right: DType) -> DType:
    """The type of the result of two operands of the same rank."""
    if left is right:
        return left
    if _kind(left) != _kind(right):
        return max(left, right, key=_kind)
    if left.is_float:
        if left in _HALVES and right in _HALVES:
            return DType.F32
        return max(left, right, key=lambda each: each.size_bytes)
    return DType.from_numpy(np.promote_types(left.numpy, right.numpy))


def _dtype_and_rank(call: Call, value: Attribute) -> tuple[DType, int]:
    if isinstance(value, Tensor):
        return call.dtype_of(value.name), 0 if call.rank(value.name) else 1
    if isinstance(value, bool):
        return DType.BOOL, 2
    if isinstance(value, int | IndexExpr):
        return DType.I64, 2
    if isinstance(value, float):
        return DType.F32, 2
    raise call.unsupported("an operand of it is neither a tensor nor a number")


def common_type(call: Call, values: Sequence[Attribute]) -> DType:
    """The element type in which an operator computes with these operands."""
    by_rank: list[DType | None] = [None, None, None]
    for value in values:
        dtype, rank = _dtype_and_rank(call, value)
        before = by_rank[rank]
        by_rank[rank] = dtype if before is None else joined(before, dtype)
    chosen: DType | None = None
    for each in by_rank:
        if each is not None and (chosen is None or _kind(each) > _kind(chosen)):
            chosen = each
    assert chosen is not None
    return chosen


def as_type(call: Call, value: Attribute, dtype: DType) -> str:
    """An operand as a tensor of an element type."""
    if isinstance(value, Tensor):
        return call.cast(value.name, dtype)
    return call.full((), value, dtype)


def promoted(call: Call, *names: str) -> tuple[str, ...]:
    """Arguments as tensors of their common type."""
    values = [call.get(name) for name in names]
    dtype = common_type(call, values)
    return tuple(as_type(call, value, dtype) for value in values)


def scaled(call: Call, tensor: str, name: str) -> str:
    """A tensor times the number that an argument is; itself for 1."""
    factor = call.get(name, 1)
    if factor == 1:
        return tensor
    return call.add("mul", tensor, as_type(call, factor, call.dtype_of(tensor)))


def as_float(call: Call, tensor: str) -> str:
    """Integers and bools as f32, floats unchanged."""
    return tensor if call.dtype_of(tensor).is_float else call.cast(tensor, DType.F32)
