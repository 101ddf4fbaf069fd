"""Named sizes as a kernel gets them, and expressions of them in native functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tensorwright.expr import Arithmetic, Index, NamedSize, value_of_node
from tensorwright.machine_code import NativeFunction, Number


def number_of(function: NativeFunction, index: Index, sizes: Mapping[NamedSize, Number]) -> Number:
    """The value of an expression of named sizes."""

    def total(parts: Iterable[Number]) -> Number:
        return sum(parts, start=function.number(0))

    def divided(dividend: Number, divisor: Number) -> Number:
        """Rounded down."""
        given = function.number(dividend)
        lower = given - divisor + 1
        return given.test("slt", 0).choose(lower, given).apply("sdiv", divisor)

    over: Arithmetic[Number] = Arithmetic(
        total,
        divided,
        divided,
        lambda dividend, divisor: dividend - divided(dividend, divisor) * divisor,
        lambda left, right: function.number(left).smaller(right),
        lambda left, right: function.number(left).larger(right),
    )

    def value(part: Index) -> Number:
        if isinstance(part, int):
            return function.number(part)
        return sizes[part] if isinstance(part, NamedSize) else value_of_node(part, value, over)

    return value(index)
