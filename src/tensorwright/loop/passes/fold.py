"""Fold the constants of a value, exactly."""

from __future__ import annotations

import math
from collections.abc import Callable

from tensorwright.base import DType
from tensorwright.expr import (
    Apply,
    Bounds,
    Cast,
    Condition,
    Const,
    Fn,
    FromIndex,
    Load,
    Select,
    Value,
    ValueExpr,
    constant,
    simplify,
)
from tensorwright.loop.scalars import convert, function_of, quiet

Decide = Callable[[Condition, Bounds], Condition]

_ARITHMETIC = frozenset((Fn.ADD, Fn.SUB, Fn.MUL, Fn.MIN, Fn.MAX, Fn.NEG, Fn.ABS))
_COMPARED = frozenset((Fn.LT, Fn.LE, Fn.EQ, Fn.NE, Fn.AND, Fn.OR, Fn.XOR, Fn.NOT))


def fold_value(value: Value, bounds: Bounds, decide: Decide) -> Value:
    """An equal value: constant parts computed, neutral operands dropped, decided branches taken.

    Rewrite:  x*1 -> x    x/1 -> x    x - 0 -> x    max(x, -inf) -> x    2*3 -> 6
              select(true, x, y) -> x               and for ints: x + 0 -> x    x*0 -> 0
    The result is the same for every input, down to the sign of zero: x + 0.0 stays (it turns -0
    to 0), x + -0.0 goes.
    """
    match value:
        case Const():
            return value
        case Load(source, indices):
            return Load(source, tuple(simplify(index, bounds) for index in indices))
        case FromIndex(index, dtype):
            simple = simplify(index, bounds)
            fits = (
                isinstance(simple, int) and dtype.is_int and dtype.lowest <= simple <= dtype.highest
            )
            if isinstance(simple, int) and fits:
                return constant(simple, dtype)
            return FromIndex(simple, dtype)
        case Cast(operand, dtype):
            return _cast(fold_value(operand, bounds, decide), dtype)
        case Select(condition, then, otherwise):
            return _select(condition, then, otherwise, bounds, decide)
        case Apply(fn, args):
            return _apply(fn, tuple(fold_value(arg, bounds, decide) for arg in args))


def _cast(operand: Value, dtype: DType) -> Value:
    if operand.dtype is dtype:
        return operand
    if isinstance(operand, Const) and math.isfinite(operand.value):
        with quiet():
            number = operand.dtype.numpy.type(operand.value)
            return constant(convert(number, operand.dtype, dtype), dtype)
    return Cast(operand, dtype)


def _select(
    condition: Condition | Value, then: Value, otherwise: Value, bounds: Bounds, decide: Decide
) -> Value:
    if isinstance(condition, ValueExpr):
        chosen = fold_value(condition, bounds, decide)
        if isinstance(chosen, Const):
            return fold_value(then if chosen.value else otherwise, bounds, decide)
        first, second = fold_value(then, bounds, decide), fold_value(otherwise, bounds, decide)
        return first if first == second else Select(chosen, first, second)
    decided = decide(condition, bounds)
    if isinstance(decided, bool):
        return fold_value(then if decided else otherwise, bounds, decide)
    first, second = fold_value(then, bounds, decide), fold_value(otherwise, bounds, decide)
    if first == second and isinstance(first, Const):
        return first
    return Select(decided, first, second)


def _apply(fn: Fn, args: tuple[Value, ...]) -> Value:
    dtype = args[0].dtype
    if all(isinstance(arg, Const) for arg in args) and fn in _ARITHMETIC | _COMPARED:
        return _computed(fn, tuple(arg for arg in args if isinstance(arg, Const)))
    if len(args) != 2 or dtype is DType.BOOL or fn.gives_bool:
        return Apply(fn, args)
    left, right = args
    if _is_neutral(fn, right):
        return left
    if fn in (Fn.ADD, Fn.MUL, Fn.MIN, Fn.MAX) and _is_neutral(fn, left):
        return right
    if fn is Fn.MUL and dtype.is_int and any(_is_number(arg, 0) for arg in args):
        return constant(0, dtype)
    return Apply(fn, args)


def _computed(fn: Fn, args: tuple[Const, ...]) -> Value:
    dtype = args[0].dtype
    with quiet():
        numbers = [dtype.numpy.type(arg.value) for arg in args]
        result = function_of(fn, dtype)(*numbers)
    folded = constant(result, DType.BOOL if fn.gives_bool else dtype)
    return (
        Apply(fn, args)
        if isinstance(folded.value, float) and folded.value != folded.value
        else folded
    )


def _is_number(value: Value, number: int) -> bool:
    return isinstance(value, Const) and value.value == number


def _is_neutral(fn: Fn, value: Value) -> bool:
    """Whether `x fn value` is x for every x, NaN and signed zeros included."""
    if not isinstance(value, Const):
        return False
    negative = math.copysign(1.0, value.value) < 0
    match fn:
        case Fn.MUL | Fn.DIV:
            return value.value == 1
        case Fn.ADD:
            return value.value == 0 and (not value.dtype.is_float or negative)
        case Fn.SUB:
            return value.value == 0 and (not value.dtype.is_float or not negative)
        case Fn.MAX:
            return bool(value.value == value.dtype.lowest)
        case Fn.MIN:
            return bool(value.value == value.dtype.highest)
        case _:
            return False
