"""The protocol of number domains, over which tensor expressions are evaluated.

The index sort is always integers; a domain gives a meaning to the value sort.  Values travel as
NumPy arrays of whatever the domain stores: floats, packed residues, objects that are terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from tensorwright.base import DType
from tensorwright.expr.functions import Fn
from tensorwright.expr.tensor import Combiner

Array: TypeAlias = np.ndarray[Any, Any]


def folded_last(array: Array, axes: tuple[int, ...]) -> Array:
    """The array with some axes put last, as one, in row-major order."""
    kept = [axis for axis in range(array.ndim) if axis not in axes]
    return array.transpose(*kept, *axes).reshape(*(array.shape[axis] for axis in kept), -1)


class Domain(Protocol):
    """A meaning for the value sort.  Implementations are immutable and may be shared by threads.

    Every method takes and gives arrays in the domain's own storage; shapes broadcast as in NumPy.
    `dtype` always names the type of the arguments, never that of the result.
    """

    def storage(self, dtype: DType) -> np.dtype[Any]:
        """The NumPy type that arrays of this element type have in the domain."""

    def inject(self, array: Array, dtype: DType) -> Array:
        """An input as the caller gives it, in storage; the shape stays."""

    def const(self, value: float | int | bool, dtype: DType) -> Array:
        """A number, as an array without dimensions."""

    def from_index(self, index: Array, dtype: DType) -> Array:
        """Integers (int64) as values."""

    def to_index(self, array: Array) -> Array:
        """Values of an integer type as int64, to be used as indices.

        Raises:  TypeError where a value of the domain is not a definite integer.
        """

    def apply(self, fn: Fn, args: Sequence[Array], dtype: DType) -> Array:
        """A function of values; comparisons and logic give bools of the domain."""

    def select(self, condition: Array, then: Array, otherwise: Array) -> Array:
        """Choose by a condition: NumPy bools (index sort) or bools of the domain (value sort)."""

    def cast(self, array: Array, source: DType, target: DType) -> Array:
        """Convert between element types."""

    def accumulator(self, combiner: Combiner, dtype: DType) -> DType:
        """The element type in which a fold is carried out before it is cast back to `dtype`."""

    def reduce(
        self, combiner: Combiner, array: Array, axes: tuple[int, ...], dtype: DType
    ) -> Array:
        """Fold over some axes, none of extent zero, and drop them; ARGMAX, ARGMIN take one axis."""

    def matmul(self, left: Array, right: Array, dtype: DType) -> Array:
        """Multiply batches of matrices.

        Shapes:  left (b, m, k), right (b, k, n) -> (b, m, n), all extents positive
        """
