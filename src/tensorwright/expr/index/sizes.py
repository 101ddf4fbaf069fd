"""Named sizes: extents that are known only when a network runs, as index expressions.

    n = named_size("n", greatest=512, divisor=8)    n % 8 is 0, and (n // 8) * 8 is n
    2*n + 1, n // 16                                their text, which `parse_size` reads
    with_sizes(2*n + 1, {"n": 64})                  129
    constraints_of((n,))                               "n <= 512, n % 8 == 0"

A size with a divisor is that many times an atom, which stands for the size divided by it: so what
the divisor divides needs no proof.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from tensorwright.expr.index.nodes import Index, Symbol, exact_div, maximum, minimum
from tensorwright.expr.index.traversal import substitute, symbols_of
from tensorwright.expr.symbolic import refused


@dataclass(frozen=True, slots=True, eq=False)
class NamedSize(Symbol):
    """A named size, divided by the number that divides it; `named_size` makes the size of it.

    least, most   what the quotient may be
    """

    name: str
    divisor: int
    least: int
    most: int | None

    is_size: ClassVar[bool] = True

    def times(self, factor: int) -> tuple[int, str]:
        """A multiple of the divisor is written as one of the size."""
        is_whole = factor % self.divisor == 0
        return (factor // self.divisor, self.name) if is_whole else (factor, f"({self})")

    def __str__(self) -> str:
        return self.name if self.divisor == 1 else f"{self.name}/{self.divisor}"

    @property
    def constraints(self) -> str:
        """What the size fulfils, beyond being positive: "4 <= n <= 512, n % 4 == 0"."""
        least, most = self.least * self.divisor, self.most
        low = f"{least} <= " if self.least > 1 else ""
        high = f" <= {most * self.divisor}" if most is not None else ""
        parts = [f"{low}{self.name}{high}"] if low or high else []
        parts += [f"{self.name} % {self.divisor} == 0"] if self.divisor > 1 else []
        return ", ".join(parts)

    def checked(self, number: int) -> int:
        """The quotient, of a number that is given for the size.

        Raises:  ExpressionError for a number that the size may not be.
        """
        quotient, remainder = divmod(number, self.divisor)
        is_between = self.least <= quotient and (self.most is None or quotient <= self.most)
        if remainder or not is_between:
            wanted = self.constraints or f"1 <= {self.name}"
            raise refused(f"{self.name} = {number}", f"the size {self.name} fulfils {wanted}")
        return quotient


def named_size(name: str, least: int = 1, greatest: int | None = None, divisor: int = 1) -> Index:
    """A size that is known by a name until a number is given for it.

    Raises:  ExpressionError for a name that is no identifier, and where no number can be given.
    """
    if not name.isidentifier():
        raise refused(f"size {name!r}", "the name of a size is an identifier", "n, batch, rows_2")
    if least < 1 or divisor < 1:
        raise refused(f"size {name}", "a size and its divisor are positive")
    low = -(-least // divisor)
    most = None if greatest is None else greatest // divisor
    if most is not None and most < low:
        reason = f"no multiple of {divisor} is between {least} and {greatest}"
        raise refused(f"size {name}", reason)
    return NamedSize(name, divisor, low, most) * divisor


def named_sizes_of(*expressions: Index) -> tuple[NamedSize, ...]:
    """The named sizes in some expressions, each once."""
    return tuple(each for each in symbols_of(*expressions) if isinstance(each, NamedSize))


def constraints_of(expressions: Iterable[Index]) -> str:
    """What the named sizes in some expressions fulfil, beyond being positive."""
    return ", ".join(filter(None, (each.constraints for each in named_sizes_of(*expressions))))


def with_sizes(expression: Index, values: Mapping[str, int]) -> Index:
    """The expression with numbers for named sizes; those that are not named stay.

    Raises:  ExpressionError for a number that a size may not be.
    """
    atoms = [each for each in named_sizes_of(expression) if each.name in values]
    return substitute(expression, {each: each.checked(values[each.name]) for each in atoms})


_TOKEN = re.compile(r"\s*(\d+|[A-Za-z_]\w*(?:\.\w+)?|//|[-+*/%(),])")
_FUNCTIONS = {"min": minimum, "max": maximum}


def parse_size(text: str, symbol: Callable[[str], Index]) -> Index:
    """Read what `str` of a size prints; `symbol` says what a name means.

    Raises:  ValueError that names the place.
    """
    tokens: list[str] = []
    position = 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if match is None:
            rest = text[position:].strip()
            raise ValueError(f"{text!r} is no size: {rest!r} is not understood")
        tokens.append(match.group(1))
        position = match.end()
    reader = _Reader(tokens, symbol)
    size = reader.sum()
    if reader.next():
        raise ValueError(f"{text!r} is no size: {reader.next()!r} is left over")
    return size


class _Reader:
    """Takes tokens from the left; mutable, used inside one function."""

    def __init__(self, tokens: list[str], symbol: Callable[[str], Index]) -> None:
        self._tokens = tokens[::-1]
        self._symbol = symbol

    def next(self) -> str:
        """The next token; "" at the end."""
        return self._tokens[-1] if self._tokens else ""

    def sum(self) -> Index:
        """Products with + and - between them."""
        total = self._product()
        while self.next() in ("+", "-"):
            sign = 1 if self._tokens.pop() == "+" else -1
            total = total + self._product() * sign
        return total

    def _product(self) -> Index:
        product = self._atom()
        while self.next() in ("*", "//", "/", "%"):
            operation = self._tokens.pop()
            operand = self._atom()
            if operation != "*" and isinstance(operand, int) and operand <= 0:
                what = "division by zero" if operand == 0 else f"division by {operand}"
                raise ValueError(f"a size has a {what}")
            match operation:
                case "*":
                    product = product * operand
                case "//":
                    product = product // operand
                case "/":
                    product = exact_div(product, operand)
                case _:
                    product = product % operand
        return product

    def _atom(self) -> Index:
        if not self._tokens:
            raise ValueError("a size ends too early")
        token = self._tokens.pop()
        if token == "-":
            return -self._atom()
        if token == "(":
            inner = self.sum()
            self._close(")")
            return inner
        if token.isdigit():
            return int(token)
        if token in _FUNCTIONS and self.next() == "(":
            self._close("(")
            left = self.sum()
            self._close(",")
            right = self.sum()
            self._close(")")
            return _FUNCTIONS[token](left, right)
        return self._symbol(token)

    def _close(self, sign: str) -> None:
        if self.next() != sign:
            raise ValueError("a bracket of a size is not closed")
        self._tokens.pop()
