"""The text of a tensor expression, executed by NumPy, with arrays for the indices."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np

from tensorwright.base import DType


class _Axis(np.ndarray):
    """The numbers of an axis along a dimension of its own."""

    dimension: int


RANK = 16  # the axes of a tensor, then those to fold


def _axis(extent: int, dimension: int) -> _Axis:
    shape = [1] * RANK
    shape[dimension] = extent
    axis = np.arange(extent).reshape(shape).view(_Axis)
    axis.dimension = dimension
    return axis


class _Tensor:
    """An array read at arrays; what a select does not choose may lie outside."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __getitem__(self, indices: Any) -> np.ndarray:
        listed = indices if isinstance(indices, tuple) else (indices,)
        places = (np.asarray(i) % n for i, n in zip(listed, self.array.shape, strict=True))
        found = np.asarray(self.array[tuple(places)])
        return found.reshape(found.shape or (1,) * RANK)


class _Numpy:
    """`compute` and its kin on arrays; mutable: it counts the axes to fold."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = arrays
        self.next = 3
        folds = {
            "sum": np.sum,
            "prod": np.prod,
            "max": np.max,
            "min": np.min,
            "any": np.any,
            "all": np.all,
        }
        self.names: dict[str, Any] = {
            **NUMPY_NAMES,
            "placeholder": lambda name, shape, dtype=None: _Tensor(self.arrays[name]),
            "reduce_axis": self.reduce_axis,
            "compute": self.compute,
            **{f"{name}_over": partial(self.fold, function) for name, function in folds.items()},
            **{
                f"arg{n}_over": partial(self.position, f)
                for n, f in (("max", np.argmax), ("min", np.argmin))
            },
        }

    def reduce_axis(self, name: str, extent: int) -> _Axis:
        self.next += 1
        return _axis(extent, self.next - 1)

    def compute(self, name: str, shape: tuple[int, ...], body: Callable[..., Any]) -> _Tensor:
        axes = [_axis(extent, n) for n, extent in enumerate(shape)]
        found = np.asarray(body(*axes))
        whole = np.broadcast_to(found, (*shape, *[1] * (RANK - len(shape))))
        return _Tensor(whole.reshape(shape))

    def fold(self, function: Any, value: np.ndarray, *axes: _Axis) -> np.ndarray:
        spread = np.broadcast_arrays(value, *axes)[0]
        places = tuple(axis.dimension for axis in axes)
        kind = {"dtype": value.dtype} if function in (np.sum, np.prod) else {}
        return np.asarray(function(spread, axis=places, keepdims=True, **kind))

    def position(self, function: Any, value: np.ndarray, axis: _Axis) -> np.ndarray:
        spread = np.broadcast_arrays(value, axis)[0]
        return np.asarray(function(spread, axis=axis.dimension, keepdims=True))


def _rounded(function: Any) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: x if x.dtype.kind in "iu" else function(x)


class _Math:
    ceil, trunc, floor = (staticmethod(_rounded(each)) for each in (np.ceil, np.trunc, np.floor))


def _cast(value: Any, dtype: DType) -> np.ndarray:
    return np.asarray(value).astype(dtype.numpy)


NUMPY_NAMES: dict[str, Any] = {
    **{
        name: getattr(np, name) for name in ("exp", "tanh", "sqrt", "sign", "fmod", "clip", "equal")
    },
    **{name: getattr(np, name) for name in ("logical_and", "logical_xor", "logical_not")},
    "np": np,
    "DType": DType,
    "math": _Math,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "max_of": np.maximum,
    "min_of": np.minimum,
    "select": np.where,
    "cast": _cast,
    "all_of": lambda *parts: reduce(np.logical_and, parts, np.bool_(True)),
    "any_of": lambda *parts: reduce(np.logical_or, parts, np.bool_(False)),
    "negate": np.logical_not,
    "mod": operator.mod,
    "round": _rounded(np.rint),
    "floor": _rounded(np.floor),
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "constant": lambda number, dtype: np.asarray(number, dtype.numpy),
}


def in_numpy(text: str, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """What NumPy makes of the tensor y of a text."""
    numpy = _Numpy(arrays)
    with np.errstate(all="ignore"):
        exec(text, numpy.names)
    found: np.ndarray = numpy.names["y"].array
    return found
