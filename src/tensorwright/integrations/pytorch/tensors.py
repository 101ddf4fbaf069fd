"""Tensors of PyTorch as arrays of NumPy and back, without a copy of their elements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from tensorwright.base import Array, DType
from tensorwright.integrations.pytorch.fx_record import array_of

_BF16 = DType.BF16.numpy


def as_array(value: Any) -> Array:
    """The elements of a tensor, or a number as an array."""
    try:
        array: Array = value.numpy()
    except (AttributeError, RuntimeError, TypeError):
        if not isinstance(value, torch.Tensor):
            return np.asarray(value)
        return array_of(value, "input")
    return array


def as_tensor(array: Array) -> torch.Tensor:
    """A fresh array as a tensor."""
    if array.dtype == _BF16:
        return torch.from_numpy(array.view("int16")).view(torch.bfloat16)
    return torch.from_numpy(array)


def overlap(tensor: torch.Tensor, others: Iterable[Any]) -> bool:
    """Whether the bytes between a tensor's first and last element meet those of another one."""
    start, end = _span(tensor)
    spans = (_span(each) for each in others if isinstance(each, torch.Tensor))
    return any(start < theirs_end and theirs < end for theirs, theirs_end in spans)


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    start = tensor.data_ptr()
    if not tensor.numel():
        return start, start
    last = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    return start, start + (last + 1) * tensor.itemsize
