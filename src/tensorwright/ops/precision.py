"""Sums of narrow floats: computed in f32, rounded once at the end."""

from __future__ import annotations

from dataclasses import replace

from tensorwright.base import Attributes, DType
from tensorwright.expr import Compute, Tensor, cast
from tensorwright.ops.access import pointwise
from tensorwright.ops.attributes import NARROW
from tensorwright.ops.operator import Operator, Pattern

_FOLDING = frozenset((Pattern.REDUCTION, Pattern.ANCHOR, Pattern.COMPOSITE))


def in_single_precision(operator: Operator) -> Operator:
    """An operator that folds f16 or bf16 as f32: stages that convert stand before and after it.

    Sums of many f16 would overflow or lose most of their digits.  Others stay as they are.
    """
    inner = operator.meaning
    if inner is None or operator.pattern not in _FOLDING:
        return operator

    def meaning(tensors: tuple[Tensor, ...], attributes: Attributes) -> tuple[Compute, ...]:
        narrow = next((tensor.dtype for tensor in tensors if tensor.dtype in NARROW), None)
        if narrow is None:
            return inner(tensors, attributes)
        wide = tuple(
            _converted("wide", tensor, DType.F32) if tensor.dtype in NARROW else tensor
            for tensor in tensors
        )
        return tuple(
            _converted(f"{result.name}_narrow", result, narrow)
            if result.dtype is DType.F32
            else result
            for result in inner(wide, attributes)
        )

    return replace(operator, meaning=meaning)


def _converted(name: str, tensor: Tensor, dtype: DType) -> Compute:
    return pointwise(name, (tensor,), tensor.shape, lambda value: cast(value, dtype))
