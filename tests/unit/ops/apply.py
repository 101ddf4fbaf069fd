"""Apply an operator to arrays through its expression, checking its shape rule on the way.

An application is also written as text: `conv(f32(n, 3, h, w), f32(8, 3, 3, 3), strides=(2, 2))`;
names of sizes are those of `SIZES`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

import ml_dtypes
import numpy as np
import torch

from tensorwright.base import DType
from tensorwright.expr import (
    Compute,
    Index,
    IndexExpr,
    NamedSize,
    counted_size,
    evaluate,
    named_size,
    named_sizes_of,
    placeholder,
)
from tensorwright.ops import TensorType, infer_types, operator, sizes_of

RANDOM = np.random.default_rng(7)
SIZES = {
    "n": named_size("n", least=2, greatest=64),
    "m": named_size("m", least=8, greatest=512, divisor=8),
    "k": named_size("k", least=16),
    "one": named_size("one"),  # which may be 1
    "h": named_size("h", least=4, greatest=12, divisor=2),
    "w": named_size("w", least=3, greatest=9),
    "long": named_size("long", greatest=70),
    "endless": named_size("endless"),
    "c": counted_size("c", 9),
}
Application = tuple[str, tuple[TensorType, ...], dict[str, Any]]


@cache
def applications(texts: str) -> dict[str, Application]:
    """The applications of a table by their text; a line that is indented goes on with another."""
    kinds = {dtype.value: partial(_typed, dtype) for dtype in DType}
    words = {**SIZES, **kinds, "DType": DType, "nan": math.nan, "_of": lambda *x, **y: (x, y)}
    found = {}
    for text in re.split(r"\n(?=\S)", texts.strip()):
        name, arguments = text.split("(", 1)
        found[text] = (name, *eval(f"_of({arguments}", words))
    return found


def _typed(dtype: DType, *shape: Index) -> TensorType:
    return TensorType(dtype, shape)


def sizes_in(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> tuple[NamedSize, ...]:
    """The named sizes of an application."""
    values = [each if isinstance(each, tuple) else (each,) for each in attributes.values()]
    values += [sizes_of(each) for each in types]
    return named_sizes_of(
        *(item for each in values for item in each if isinstance(item, IndexExpr))
    )


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
