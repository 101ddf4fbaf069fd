"""The protocol of number domains, over which tensor expressions are evaluated.

The index sort is always integers; a domain gives a meaning to the value sort.  Values travel as
NumPy arrays of whatever the domain stores: floats, packed residues, objects that are terms.

The number domain of NumPy, with which every compiled program is compared.

Exact in the element type: integers wrap, division truncates, NaN propagates through min and max.
Transcendental functions of f16, bf16 and f32 are computed in f64 and rounded once, sums and
products of them are accumulated in f64, so that the result may serve as a reference.

Terms in place of numbers: a prover's expressions, polynomials, or anything else with meanings.

`Terms` is the protocol of a term language; `SymbolicDomain` lifts it to arrays of terms.  Sums of
products are reordered freely, so the language must treat + and * of floats as those of a ring.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


_F64 = np.dtype(np.float64)
_EXACT_LIMIT = float(1 << 53)  # integers below are exact in f64


class NumpyDomain:
    """Values are NumPy numbers of the element type; see the module docstring."""

    def storage(self, dtype: DType) -> np.dtype[Any]:
        """The NumPy type of the element type."""
        return dtype.numpy

    def inject(self, array: Array, dtype: DType) -> Array:
        """The array itself.

        Raises:  TypeError for an array of another type: the evaluator converts nothing silently.
        """
        if array.dtype != dtype.numpy:
            raise TypeError(f"an array of {array.dtype} for a tensor of {dtype}")
        return array

    def const(self, value: float | int | bool, dtype: DType) -> Array:
        """The number, rounded or wrapped to the type."""
        if dtype.is_int:
            bits = 8 * dtype.size_bytes
            wrapped = int(value) & ((1 << bits) - 1)
            if dtype.is_signed and wrapped >> (bits - 1):
                wrapped -= 1 << bits
            return np.array(wrapped, dtype.numpy)
        return np.array(value, dtype.numpy)

    def from_index(self, index: Array, dtype: DType) -> Array:
        """The integers converted."""
        return self.cast(index, DType.I64, dtype)

    def to_index(self, array: Array) -> Array:
        """The integers widened."""
        return array.astype(np.int64, copy=False)

    def apply(self, fn: Fn, args: Sequence[Array], dtype: DType) -> Array:
        """The function as `value.py` states it.

        Raises:  TypeError for a function that the type does not have (exp of an integer).
        """
        if fn in TRANSCENDENTAL and dtype.is_float:
            wide = [np.asarray(arg, _F64) for arg in args]
            return np.asarray(TRANSCENDENTAL[fn](*wide)).astype(dtype.numpy, copy=False)
        table = _INTEGER if dtype.is_int else _BOOL if dtype is DType.BOOL else _FLOAT
        function = table.get(fn) or _ANY.get(fn)
        if function is None:
            raise TypeError(f"{fn.text} of {dtype}: the type does not have it")
        if dtype in (DType.F16, DType.BF16):
            args = [np.asarray(arg, np.float32) for arg in args]
        result = np.asarray(function(*args))
        return result if fn.gives_bool else result.astype(dtype.numpy, copy=False)

    def select(self, condition: Array, then: Array, otherwise: Array) -> Array:
        """Choose elements."""
        return np.where(condition, then, otherwise)

    def cast(self, array: Array, source: DType, target: DType) -> Array:
        """Convert: to bool by `!= 0`, float to int towards zero, int to int by wrapping."""
        if source is target:
            return array
        if target is DType.BOOL:
            return np.asarray(array != 0)
        if source is DType.BF16 or target is DType.BF16:  # ml_dtypes converts to and from f32 only
            wide = array if array.dtype == np.float32 else array.astype(np.float32)
            return wide.astype(target.numpy, copy=False)
        return np.asarray(array).astype(target.numpy, order="C", copy=False)

    def accumulator(self, combiner: Combiner, dtype: DType) -> DType:
        """f64 for sums and products of floats, else the type itself."""
        if dtype.is_float and combiner in (Combiner.SUM, Combiner.PROD):
            return DType.F64
        return dtype

    def reduce(
        self, combiner: Combiner, array: Array, axes: tuple[int, ...], dtype: DType
    ) -> Array:
        """Fold; positions come as i64, the first among equals and the first NaN if there is one."""
        if dtype in (DType.F16, DType.BF16):
            array = array.astype(np.float32)
        if combiner.is_arg:
            find = np.argmax if combiner is Combiner.ARGMAX else np.argmin
            return np.asarray(find(array, axis=axes[0]), np.int64)
        fold = _FOLD[combiner]
        if combiner in (Combiner.SUM, Combiner.PROD):
            return np.asarray(fold(array, axis=axes, dtype=dtype.numpy))
        return np.asarray(fold(array, axis=axes)).astype(dtype.numpy, copy=False)

    def matmul(self, left: Array, right: Array, dtype: DType) -> Array:
        """BLAS for floats, and for integers whose sums stay exact in f64; other integers wrap."""
        if dtype.is_int and left.size and right.size:
            largest = float(_magnitude(left)) * float(_magnitude(right)) * left.shape[-1]
            if largest < _EXACT_LIMIT:
                product = np.matmul(left.astype(_F64), right.astype(_F64))
                return np.asarray(product.astype(np.int64).astype(dtype.numpy, copy=False))
        return np.asarray(np.matmul(left, right))


NUMPY = NumpyDomain()


def _magnitude(array: Array) -> int:
    return max(abs(int(array.min())), abs(int(array.max())))


def _erf(x: Array) -> Array:
    flat = x.ravel()
    return np.fromiter(map(math.erf, flat.tolist()), _F64, flat.size).reshape(x.shape)


def _sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))  # never overflows
    return np.asarray(np.where(x >= 0, 1.0, small) / (1.0 + small))


def _truncating_div(a: Array, b: Array) -> Array:
    quotient = np.floor_divide(a, b)
    rounded_down = ((a < 0) != (b < 0)) & (quotient * b != a) & (b != 0)
    return np.asarray(quotient + rounded_down.astype(quotient.dtype))


def _integer_pow(a: Array, b: Array) -> Array:
    power = np.power(a, np.maximum(b, 0))
    inverse = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0))
    return np.where(b < 0, inverse, power)


def _false(a: Array) -> Array:
    return np.zeros(np.shape(a), np.bool_)


def _same(a: Array) -> Array:
    return a


# numpy's ufuncs are declared with more precise types than a table can hold
_Table = dict[Fn, Callable[..., Any]]

_ANY: _Table = {
    Fn.MIN: np.minimum,
    Fn.MAX: np.maximum,
    Fn.LT: np.less,
    Fn.LE: np.less_equal,
    Fn.EQ: np.equal,
    Fn.NE: np.not_equal,
    Fn.AND: np.logical_and,
    Fn.OR: np.logical_or,
    Fn.XOR: np.logical_xor,
    Fn.NOT: np.logical_not,
    Fn.ISNAN: _false,
    Fn.ISINF: _false,
}
_FLOAT: _Table = {
    Fn.ADD: np.add,
    Fn.SUB: np.subtract,
    Fn.MUL: np.multiply,
    Fn.DIV: np.true_divide,
    Fn.MOD: np.fmod,
    Fn.FLOORMOD: np.remainder,
    Fn.NEG: np.negative,
    Fn.ABS: np.abs,
    Fn.SIGN: np.sign,
    Fn.FLOOR: np.floor,
    Fn.CEIL: np.ceil,
    Fn.ROUND: np.rint,
    Fn.TRUNC: np.trunc,
    Fn.SQRT: np.sqrt,
    Fn.ISNAN: np.isnan,
    Fn.ISINF: np.isinf,
}
_BITS: _Table = {
    Fn.BITAND: np.bitwise_and,
    Fn.BITOR: np.bitwise_or,
    Fn.BITXOR: np.bitwise_xor,
    Fn.BITNOT: np.invert,
}
_INTEGER: _Table = {
    **_BITS,
    Fn.ADD: np.add,
    Fn.SUB: np.subtract,
    Fn.MUL: np.multiply,
    Fn.DIV: _truncating_div,
    Fn.MOD: np.fmod,
    Fn.FLOORMOD: np.remainder,
    Fn.POW: _integer_pow,
    Fn.NEG: np.negative,
    Fn.ABS: np.abs,
    Fn.SIGN: np.sign,
    Fn.FLOOR: _same,
    Fn.CEIL: _same,
    Fn.ROUND: _same,
    Fn.TRUNC: _same,
    Fn.SHL: np.left_shift,
    Fn.SHR: np.right_shift,
}
_BOOL: _Table = {**_BITS, Fn.ADD: np.logical_or, Fn.MUL: np.logical_and}
TRANSCENDENTAL: _Table = {
    Fn.POW: np.power,
    Fn.ATAN2: np.arctan2,
    Fn.RSQRT: lambda x: 1.0 / np.sqrt(x),
    Fn.EXP: np.exp,
    Fn.LOG: np.log,
    Fn.LOG1P: np.log1p,
    Fn.EXPM1: np.expm1,
    Fn.SIN: np.sin,
    Fn.COS: np.cos,
    Fn.TAN: np.tan,
    Fn.ASIN: np.arcsin,
    Fn.ACOS: np.arccos,
    Fn.ATAN: np.arctan,
    Fn.SINH: np.sinh,
    Fn.COSH: np.cosh,
    Fn.TANH: np.tanh,
    Fn.ASINH: np.arcsinh,
    Fn.ACOSH: np.arccosh,
    Fn.ATANH: np.arctanh,
    Fn.ERF: _erf,
    Fn.SIGMOID: _sigmoid,
}
"""Functions of floats that are computed in f64 and rounded once."""
_FOLD: dict[Combiner, Callable[..., Any]] = {
    Combiner.SUM: np.sum,
    Combiner.PROD: np.prod,
    Combiner.MAX: np.max,
    Combiner.MIN: np.min,
    Combiner.ANY: np.any,
    Combiner.ALL: np.all,
}


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
