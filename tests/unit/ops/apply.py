"""Apply an operator to arrays through its expression, checking its shape rule on the way."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch

from tensorwright.base import DType
from tensorwright.expr import Compute, evaluate, placeholder
from tensorwright.ops import TensorType, infer_types, operator

RANDOM = np.random.default_rng(7)


def type_of(array: np.ndarray[Any, Any]) -> TensorType:
    return TensorType(DType.from_numpy(array.dtype), array.shape)


def floats(*shape: int, low: float = -2.0, high: float = 2.0) -> np.ndarray[Any, Any]:
    return RANDOM.uniform(low, high, shape).astype(np.float32)


def ints(*shape: int, low: int = -9, high: int = 9, dtype: Any = np.int64) -> np.ndarray[Any, Any]:
    return RANDOM.integers(low, high, shape).astype(dtype)


def meaning(
    name: str, *types: TensorType, **attributes: Any
) -> tuple[tuple[Any, ...], tuple[Compute, ...]]:
    """The placeholders and the expression of an application."""
    _, complete = infer_types(name, types, attributes)
    inputs = tuple(placeholder(f"x{n}", each.shape, each.dtype) for n, each in enumerate(types))
    found = operator(name)
    assert found.meaning is not None
    return inputs, found.meaning(inputs, complete)


def apply(
    name: str, *arrays: np.ndarray[Any, Any], **attributes: Any
) -> tuple[np.ndarray[Any, Any], ...]:
    """The outputs of an application, whose shapes and element types are as inferred."""
    types = tuple(type_of(array) for array in arrays)
    expected, complete = infer_types(name, types, attributes)
    found = operator(name)
    if found.host is not None:
        results = found.host(arrays, complete)
    else:
        inputs, computes = meaning(name, *types, **attributes)
        results = evaluate(computes, dict(zip(inputs, arrays, strict=True)))
    assert [type_of(result) for result in results] == list(expected)
    return tuple(results)


def check(
    name: str,
    expected: Any,
    *arrays: np.ndarray[Any, Any],
    tolerance: float = 1e-5,
    **attributes: Any,
) -> None:
    """Compare the only output with what somebody else computed."""
    (result,) = apply(name, *arrays, **attributes)
    wanted = expected.numpy() if isinstance(expected, torch.Tensor) else np.asarray(expected)
    assert result.shape == wanted.shape
    if result.dtype.kind in "biu":
        np.testing.assert_array_equal(result, wanted)
    else:
        if result.dtype == ml_dtypes.bfloat16:
            result, wanted = result.astype(np.float32), wanted.astype(np.float32)
        np.testing.assert_allclose(result, wanted, rtol=tolerance, atol=tolerance)
