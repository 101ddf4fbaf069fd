"""A finite field in place of the real numbers: equal expressions get equal fingerprints.

A float is a pair (v, e): v modulo the prime P = 2Q + 1, e modulo the prime Q, both the image of the
same number.  Addition, subtraction, multiplication and division are exact in both.  exp takes e to
the power g**e modulo P, where g has order Q, so that exp(a + b) = exp(a) * exp(b) in v.  Integers,
bools and the index sort are what they are in NumPy.

What is preserved (both sides get the same v, for all inputs or for all but about one in Q):
- the identities of a field: associativity, distributivity, x/y = x * (1/y), x/x = 1;
- exp(a + b) = exp(a) exp(b), exp(0) = 1, for exponents without exp; tanh, sigmoid, sinh, cosh,
  expm1 by their definitions through exp; rsqrt(x) = 1/sqrt(x); x**n for |n| <= 64, x**0.5;
- max, min and comparisons follow the order of v between -P/2 and P/2: a lattice (associative,
  commutative, idempotent, absorbing, distributive) with min(x, y) = -max(-x, -y),
  abs(x) = max(x, -x), relu(relu(x)) = relu(x); not its order under + and *, so
  max(x + c, y + c) = max(x, y) + c is missed;
- erf, sin, asin, atan, asinh, atanh are odd and cos is even; these and all other functions are
  otherwise random functions of v (equal arguments give equal results).

Missing an equality is allowed; a false one is claimed for one element with probability about 1/P.
Infinities are the ends of the order.  There is no NaN.  Fingerprints are compared by `residues`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorwright.base import DType
from tensorwright.expr import NUMPY, Array, Combiner, Fn, folded_last

_Q = 1073741789
_P = 2 * _Q + 1
_BASE = 4  # a square, so of order Q modulo P
_HALF = _P // 2
_SHIFT = 31
_MASK = (1 << _SHIFT) - 1
_INT64 = np.dtype(np.int64)

_ODD = frozenset({Fn.ERF, Fn.SIN, Fn.ASIN, Fn.ATAN, Fn.ASINH, Fn.ATANH})


@dataclass(frozen=True, slots=True)
class FieldDomain:
    """See the module docstring; `seed` chooses the random functions.

    Floats are stored as int64: v between -P/2 and P/2 in the high bits, e in the low 31.
    """

    seed: int = 0

    def storage(self, dtype: DType) -> np.dtype[Any]:
        """int64 for floats, the NumPy type for the others."""
        return _INT64 if dtype.is_float else dtype.numpy

    def random(self, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
        """Independent random numbers, for a float input."""
        v = generator.integers(0, _P, shape, dtype=np.int64)
        return _pack(v, generator.integers(0, _Q, shape, dtype=np.int64))

    def inject(self, array: Array, dtype: DType) -> Array:
        """An array of `random` as it is; floats by their exact binary value."""
        if not dtype.is_float:
            return NUMPY.inject(array, dtype)
        return array if array.dtype == _INT64 else _from_floats(array)

    def const(self, value: float | int | bool, dtype: DType) -> Array:
        """The image of the exact binary value."""
        if not dtype.is_float:
            return NUMPY.const(value, dtype)
        return _from_floats(np.array(value, np.float64))

    def from_index(self, index: Array, dtype: DType) -> Array:
        """The image of integers."""
        return self.cast(index, DType.I64, dtype)

    def to_index(self, array: Array) -> Array:
        """The integers widened."""
        return NUMPY.to_index(array)

    def cast(self, array: Array, source: DType, target: DType) -> Array:
        """Between floats nothing happens; a float becomes a random integer; to bool is `!= 0`."""
        if not source.is_float:
            if not target.is_float:
                return NUMPY.cast(array, source, target)
            if source is DType.U64:
                return _pack(
                    (array % np.uint64(_P)).astype(_INT64), (array % np.uint64(_Q)).astype(_INT64)
                )
            whole = array.astype(_INT64)
            return _pack(whole, whole)
        if target.is_float:
            return array
        if target is DType.BOOL:
            return np.asarray(_v(array) != 0)
        return (self._hash("cast", _v(array)) & np.uint64(0x7F)).astype(target.numpy)

    def select(self, condition: Array, then: Array, otherwise: Array) -> Array:
        """Choose elements."""
        return np.where(condition, then, otherwise)

    def accumulator(self, combiner: Combiner, dtype: DType) -> DType:
        """The type itself."""
        return dtype

    def apply(self, fn: Fn, args: Sequence[Array], dtype: DType) -> Array:
        """The stand-in for a function of floats; other types as in NumPy."""
        if not dtype.is_float:
            return NUMPY.apply(fn, args, dtype)
        if len(args) == 2:
            return self._binary(fn, *args)
        return self._unary(fn, args[0])

    def _binary(self, fn: Fn, a: Array, b: Array) -> Array:
        match fn:
            case Fn.ADD:
                return _pack(_v(a) + _v(b), _e(a) + _e(b))
            case Fn.SUB:
                return _pack(_v(a) - _v(b), _e(a) - _e(b))
            case Fn.MUL:
                return _multiply(a, b)
            case Fn.DIV:
                return _multiply(a, _invert(b))
            case Fn.MIN:
                return np.minimum(a, b)
            case Fn.MAX:
                return np.maximum(a, b)
            case Fn.LT | Fn.LE | Fn.EQ | Fn.NE:
                return NUMPY.apply(fn, (_v(a), _v(b)), DType.I64)
            case Fn.POW:
                return self._power(a, b)
            case _:
                return self._random(fn.name, _v(a), _v(b))

    def _unary(self, fn: Fn, x: Array) -> Array:
        one = self.const(1, DType.F64)
        match fn:
            case Fn.NEG:
                return _pack(-_v(x), -_e(x))
            case Fn.ABS:
                return np.maximum(x, _pack(-_v(x), -_e(x)))
            case Fn.SIGN:
                return _pack(np.sign(_v(x)), np.sign(_v(x)))
            case Fn.ISNAN | Fn.ISINF:
                return np.zeros(x.shape, np.bool_)
            case Fn.EXP:
                v = _powers(np.full(x.shape, _BASE, _INT64), _e(x), _P)
                return _pack(v, (self._hash("exp", v) % np.uint64(_Q)).astype(_INT64))
            case Fn.RSQRT:
                return _invert(self._unary(Fn.SQRT, x))
            case Fn.LOG1P:
                return self._unary(Fn.LOG, self._binary(Fn.ADD, x, one))
            case Fn.TAN:
                return self._binary(Fn.DIV, self._unary(Fn.SIN, x), self._unary(Fn.COS, x))
            case Fn.EXPM1 | Fn.SIGMOID | Fn.TANH | Fn.SINH | Fn.COSH:
                return self._through_exp(fn, x, one)
            case Fn.COS:
                return self._random(fn.name, np.abs(_v(x)))
            case _ if fn in _ODD:
                sign = np.sign(_v(x))
                return _multiply(self._random(fn.name, np.abs(_v(x))), _pack(sign, sign))
            case _:
                return self._random(fn.name, _v(x))

    def _through_exp(self, fn: Fn, x: Array, one: Array) -> Array:
        up = self._unary(Fn.EXP, x)
        down = self._unary(Fn.EXP, self._unary(Fn.NEG, x))
        add, subtract = self._binary(Fn.ADD, up, down), self._binary(Fn.SUB, up, down)
        match fn:
            case Fn.EXPM1:
                return self._binary(Fn.SUB, up, one)
            case Fn.SIGMOID:
                return _invert(self._binary(Fn.ADD, one, down))
            case Fn.TANH:
                return self._binary(Fn.DIV, subtract, add)
            case _:
                half = self.const(0.5, DType.F64)
                return _multiply(subtract if fn is Fn.SINH else add, half)

    def _power(self, a: Array, b: Array) -> Array:
        """Whole exponents up to 64 by multiplication, 0.5 as a square root, others at random."""
        a, b = np.broadcast_arrays(a, b)
        exponent = _v(b)
        is_whole = (np.abs(exponent) <= 64) & (exponent % _Q == _e(b))
        base = np.where(exponent < 0, _invert(a), a)
        count = np.where(is_whole, np.abs(exponent), 0)
        v, e = _powers(_v(base), count, _P), _powers(_e(base), count, _Q)
        is_half = b == self.const(0.5, DType.F64)
        other = self._random(Fn.POW.name, _v(a), exponent)
        other = np.where(is_half, self._unary(Fn.SQRT, a), other)
        return np.where(is_whole, _pack(v, e), other)

    def _hash(self, name: str, *numbers: Array) -> Array:
        """64 random bits for every tuple of numbers (splitmix64)."""
        digest = hashlib.sha256(f"{self.seed}:{name}".encode()).digest()
        state: Any = np.uint64(int.from_bytes(digest[:8], "little"))
        for number in numbers:
            mixed = (state + number.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state = mixed ^ (mixed >> np.uint64(31))
        return np.asarray(state)

    def _random(self, name: str, *numbers: Array) -> Array:
        v = (self._hash(name, *numbers) % np.uint64(_P)).astype(_INT64)
        e = (self._hash(name + "'", *numbers) % np.uint64(_Q)).astype(_INT64)
        return _pack(v, e)

    def reduce(
        self, combiner: Combiner, array: Array, axes: tuple[int, ...], dtype: DType
    ) -> Array:
        """Fold; the largest and smallest by the order of the module docstring."""
        if not dtype.is_float:
            return NUMPY.reduce(combiner, array, axes, dtype)
        if combiner is Combiner.SUM:
            return _pack(_v(array).sum(axis=axes), _e(array).sum(axis=axes))
        if combiner is Combiner.PROD:
            flat = folded_last(array, axes)
            result = flat[..., 0]
            for k in range(1, flat.shape[-1]):
                result = _multiply(result, flat[..., k])
            return result
        return NUMPY.reduce(combiner, array, axes, DType.I64)

    def matmul(self, left: Array, right: Array, dtype: DType) -> Array:
        """One step of the inner axis at a time, reduced at once: no product overflows."""
        if not dtype.is_float:
            return NUMPY.matmul(left, right, dtype)
        total = _multiply(left[:, :, :1], right[:, :1, :])
        for k in range(1, left.shape[2]):
            part = _multiply(left[:, :, k : k + 1], right[:, k : k + 1, :])
            total = _pack(_v(total) + _v(part), _e(total) + _e(part))
        return total


def residues(array: Array) -> Array:
    """The part v of stored floats: what two equal expressions agree on."""
    return _v(array)


def _pack(v: Array, e: Array) -> Array:
    centred = (v + _HALF) % _P - _HALF
    return np.asarray((centred << _SHIFT) | (e % _Q), _INT64)


def _v(array: Array) -> Array:
    return np.asarray(array >> _SHIFT)


def _e(array: Array) -> Array:
    return np.asarray(array & _MASK)


def _multiply(a: Array, b: Array) -> Array:
    return _pack(_v(a) * _v(b), _e(a) * _e(b))


def _invert(array: Array) -> Array:
    """1/x; 0 for 0."""
    v, e = _v(array), _e(array)
    return _pack(
        _powers(v, np.full(v.shape, _P - 2, _INT64), _P),
        _powers(e, np.full(e.shape, _Q - 2, _INT64), _Q),
    )


def _powers(base: Array, exponent: Array, modulus: int) -> Array:
    """base ** exponent modulo a prime below 2**31, for exponents >= 0, by squaring."""
    result = np.ones(np.broadcast_shapes(base.shape, exponent.shape), _INT64)
    square = base % modulus
    while exponent.any():
        result = np.where(exponent & 1, result * square % modulus, result)
        square = square * square % modulus
        exponent = exponent >> 1
    return result


def _from_floats(array: Array) -> Array:
    """mantissa * 2**exponent in both fields; infinities to the ends of the order, NaN to 0."""
    numbers = array.astype(np.float64)
    mantissa, exponent = np.frexp(np.where(np.isfinite(numbers), numbers, 0.0))
    whole = np.ldexp(mantissa, 53).astype(_INT64)
    power = exponent.astype(_INT64) - 53
    two = np.full(whole.shape, 2, _INT64)
    v = whole % _P * _powers(two, power % (_P - 1), _P)
    e = whole % _Q * _powers(two, power % (_Q - 1), _Q)
    v = np.where(np.isposinf(numbers), _HALF, np.where(np.isneginf(numbers), -_HALF, v))
    return _pack(v, e)
