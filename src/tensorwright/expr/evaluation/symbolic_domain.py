"""Terms in place of numbers: a prover's expressions, polynomials, or anything else with meanings.

`Terms` is the protocol of a term language; `SymbolicDomain` lifts it to arrays of terms.  Sums of
products are reordered freely, so the language must treat + and * of floats as those of a ring.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tensorwright.base import DType
from tensorwright.expr.evaluation.domain import Array, folded_last
from tensorwright.expr.functions import Fn
from tensorwright.expr.tensor import Combiner

_OBJECT = np.dtype(object)


class Terms(Protocol):
    """A language of terms, one element at a time.  A term may be any Python object but an array."""

    def const(self, value: float | int | bool, dtype: DType) -> Any:
        """The term of a number."""

    def integer(self, term: Any) -> int:
        """The number that a term of an integer type is.

        Raises:  TypeError where it is not a definite number.
        """

    def apply(self, fn: Fn, args: tuple[Any, ...], dtype: DType) -> Any:
        """A function of terms whose type is `dtype`; comparisons and logic give truth terms."""

    def select(self, condition: Any, then: Any, otherwise: Any) -> Any:
        """`then` where the truth term holds, else `otherwise`."""

    def cast(self, term: Any, source: DType, target: DType) -> Any:
        """Convert between element types."""


@dataclass(frozen=True, slots=True)
class SymbolicDomain:
    """Arrays of dtype object whose elements are terms."""

    terms: Terms

    def storage(self, dtype: DType) -> np.dtype[Any]:
        """Objects."""
        return _OBJECT

    def inject(self, array: Array, dtype: DType) -> Array:
        """An array of terms as it is; numbers become constant terms."""
        if array.dtype == _OBJECT:
            return array
        return _each(lambda number: self.terms.const(number, dtype), np.asarray(array, _OBJECT))

    def const(self, value: float | int | bool, dtype: DType) -> Array:
        """A constant term."""
        return _whole(self.terms.const(value, dtype), ())

    def from_index(self, index: Array, dtype: DType) -> Array:
        """Constant terms."""
        return self.inject(index, dtype)

    def to_index(self, array: Array) -> Array:
        """The numbers that the terms are.

        Raises:  TypeError where a term is not a definite number.
        """
        numbers = [self.terms.integer(term) for term in array.ravel()]
        return np.array(numbers, np.int64).reshape(array.shape)

    def apply(self, fn: Fn, args: Sequence[Array], dtype: DType) -> Array:
        """The function, element by element."""
        return _each(lambda *terms: self.terms.apply(fn, terms, dtype), *args)

    def select(self, condition: Array, then: Array, otherwise: Array) -> Array:
        """Choose where the condition is known, else build terms that choose."""
        if condition.dtype == np.bool_:
            return np.where(condition, then, otherwise)
        return _each(self.terms.select, condition, then, otherwise)

    def cast(self, array: Array, source: DType, target: DType) -> Array:
        """Convert, element by element."""
        if source is target:
            return array
        return _each(lambda term: self.terms.cast(term, source, target), array)

    def accumulator(self, combiner: Combiner, dtype: DType) -> DType:
        """The type itself."""
        return dtype

    def reduce(
        self, combiner: Combiner, array: Array, axes: tuple[int, ...], dtype: DType
    ) -> Array:
        """Fold from the first element to the last, in row-major order of the axes."""
        flat = folded_last(array, axes)
        shape = flat.shape[:-1]
        best = _copy(flat[..., 0], shape)
        position = np.broadcast_to(self.const(0, DType.I64), shape)
        for k in range(1, flat.shape[-1]):
            rival = _copy(flat[..., k], shape)
            if not combiner.is_arg:
                best = self.apply(combiner.fn, (best, rival), dtype)
                continue
            order = (best, rival) if combiner is Combiner.ARGMAX else (rival, best)
            is_new = self.apply(Fn.LT, order, dtype)
            best = self.select(is_new, rival, best)
            position = self.select(is_new, self.const(k, DType.I64), position)
        return position if combiner.is_arg else best

    def matmul(self, left: Array, right: Array, dtype: DType) -> Array:
        """Sums of products, from the first to the last."""
        products = self.apply(Fn.MUL, (left[:, :, :, None], right[:, None, :, :]), dtype)
        return self.reduce(Combiner.SUM, products, (2,), dtype)


def _whole(term: Any, shape: Sequence[int]) -> Array:
    """An array filled with one term, whatever the term is."""
    array = np.empty(shape, _OBJECT)
    array.fill(term)
    return array


def _copy(terms: Any, shape: Sequence[int]) -> Array:
    """An indexed array; where no dimension is left, NumPy gives the bare element instead."""
    return terms if isinstance(terms, np.ndarray) else _whole(terms, shape)


def _each(function: Any, *args: Array) -> Array:
    """A function of terms on arrays that broadcast; unlike NumPy's it always gives an array."""
    spread = np.broadcast_arrays(*args)
    result = np.empty(spread[0].shape, _OBJECT)
    for at in np.ndindex(result.shape):
        result[at] = function(*(array[at] for array in spread))
    return result
