"""Named sizes as a kernel gets them, and expressions of them in native functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tensorwright.expr import Arithmetic, Index, NamedSize, value_of_node
from tensorwright.machine_code import NativeFunction, Number


def number_of(function: NativeFunction, index: Index, sizes: Mapping[NamedSize, Number]) -> Number:
    """The value of an expression of named sizes, none of whose parts is negative."""

    def total(parts: Iterable[Number]) -> Number:
        return sum(parts, start=function.number(0))

    def divided(dividend: Number, divisor: Number) -> Number:
        return function.number(dividend).apply("udiv", divisor)

    over: Arithmetic[Number] = Arithmetic(
        total,
        divided,
        divided,
        lambda dividend, divisor: function.number(dividend).apply("urem", divisor),
        lambda left, right: function.number(left).smaller(right),
        lambda left, right: function.number(left).larger(right),
    )

    def value(part: Index) -> Number:
        if isinstance(part, int):
            return function.number(part)
        return sizes[part] if isinstance(part, NamedSize) else value_of_node(part, value, over)

    return value(index)
