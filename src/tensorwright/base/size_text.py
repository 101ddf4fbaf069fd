"""Sizes as text, and formulas of named sizes that are computed when a network runs.

    read_size("2*n + 1", symbol, operations)     whatever the operations make of it
    Formula("64*((n + 7) // 8)").at({"n": 9})    128

Expressions of sizes print this text (`tensorwright.expr`), and read it back.  A program that runs
without the compiler has only the text, and computes with numbers.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from tensorwright.base.errors import UnsupportedError, UsageError
from tensorwright.base.tensors import OpenSize

T = TypeVar("T")
_TOKEN = re.compile(r"\s*(?:(\d+)|(min|max)\b|([A-Za-z_]\w*(?:\.\w+)?)|(//|[-+*/%(),]))")
_TYPICAL = 128  # of a size without a greatest number
_TYPICAL_WINDOWS = 32
_BATCH = re.compile(r"batch|(^|_)bsz?($|_)", re.IGNORECASE)
_LENGTH = re.compile(
    r"seq|len|time|token|frame|step|past|(^|_)(row|point|node|edge|box)(s|es)?($|_)", re.IGNORECASE
)
_DIVISIONS = ("//", "/", "%")


@dataclass(frozen=True, slots=True)
class SizeOperations(Generic[T]):
    """The values that a parser of size expressions builds.

    number   of a literal       signs   + - * // / % min max
    """

    number: Callable[[int], T]
    signs: Mapping[str, Callable[[T, T], T]]


def read_size(text: str, symbol: Callable[[str], T | None], operations: SizeOperations[T]) -> T:
    """Read a size.

    symbol   what a name means, `n` or `x.0`; None where it means nothing
    Raises:  ValueError that names the place.
    """
    tokens: list[int | str | _Named[T]] = []
    position = 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        number, function, name, sign = match.groups() if match else (None,) * 4
        meant = symbol(name) if name else None
        token = int(number) if number else function or sign
        if meant is not None:
            tokens.append(_Named(meant))
        elif token is not None:
            tokens.append(token)
        if match is None or (meant is None and token is None):
            rest = text[position:].strip()
            raise ValueError(f"{text!r} is not a size: {rest!r} is not understood")
        position = match.end()
    reader = _Reader(tokens, operations)
    size = reader.sum()
    if reader.next() is not None:
        raise ValueError(f"{text!r} is not a size: {str(reader.next())!r} is left over")
    return size


@dataclass(frozen=True, slots=True)
class _Named(Generic[T]):
    """A name with its meaning."""

    meaning: T

    def __str__(self) -> str:
        return str(self.meaning)


class _Reader(Generic[T]):
    """Takes tokens from the left; mutable, used inside one function."""

    def __init__(self, tokens: list[int | str | _Named[T]], operations: SizeOperations[T]) -> None:
        self._tokens = tokens[::-1]
        self._operations = operations

    def next(self) -> int | str | _Named[T] | None:
        """The next token; None at the end."""
        return self._tokens[-1] if self._tokens else None

    def sum(self) -> T:
        """Products with + and - between them."""
        total = self._product()
        while isinstance(sign := self.next(), str) and sign in ("+", "-"):
            self._tokens.pop()
            total = self._operations.signs[sign](total, self._product())
        return total

    def _product(self) -> T:
        product = self._atom()
        while isinstance(sign := self.next(), str) and sign in ("*", *_DIVISIONS):
            self._tokens.pop()
            operand = self._atom()
            if sign in _DIVISIONS and isinstance(operand, int) and operand <= 0:
                divisor = "zero" if operand == 0 else str(operand)
                raise ValueError(f"a size has a division by {divisor}")
            product = self._operations.signs[sign](product, operand)
        return product

    def _atom(self) -> T:
        if not self._tokens:
            raise ValueError("a size ends too early")
        token = self._tokens.pop()
        if isinstance(token, _Named):
            return token.meaning
        if isinstance(token, int):
            return self._operations.number(token)
        if token == "-":
            return self._operations.signs["-"](self._operations.number(0), self._atom())
        if token == "(":
            inner = self.sum()
            self._take(")")
            return inner
        if token not in ("min", "max"):
            raise ValueError(f"{token!r} is not an extent")
        self._take("(")
        left = self.sum()
        self._take(",")
        right = self.sum()
        self._take(")")
        return self._operations.signs[token](left, right)

    def _take(self, sign: str) -> None:
        if self.next() != sign:
            raise ValueError("a bracket of a size is not closed")
        self._tokens.pop()


Computed: TypeAlias = Callable[[Mapping[str, int]], int]


def _of_both(operation: Callable[[int, int], int]) -> Callable[[Computed, Computed], Computed]:
    return lambda left, right: lambda values: operation(left(values), right(values))


_COMPUTED: SizeOperations[Computed] = SizeOperations(
    lambda number: lambda _: number,
    {
        "+": _of_both(operator.add),
        "-": _of_both(operator.sub),
        "*": _of_both(operator.mul),
        "//": _of_both(operator.floordiv),
        "/": _of_both(operator.floordiv),
        "%": _of_both(operator.mod),
        "min": _of_both(min),
        "max": _of_both(max),
    },
)


@lru_cache(maxsize=1 << 14)  # a plan says the same sizes in many tensors
def _computed(text: str) -> Computed:
    return read_size(text, operator.itemgetter, _COMPUTED)


@lru_cache(maxsize=1 << 14)
def _names_in(text: str) -> tuple[str, ...]:
    words = re.findall(r"[A-Za-z_]\w*", text)
    return tuple(dict.fromkeys(name for name in words if name not in ("min", "max")))


@dataclass(frozen=True, slots=True)
class Formula(OpenSize):
    """A size that is computed from named ones.

    Raises:  ValueError for what is not a text of a size.
    """

    text: str
    _computed: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_computed", _computed(self.text))

    def at(self, values: Mapping[str, int]) -> int:
        """The number for some values of the named sizes.  Raises: KeyError for one without."""
        number: int = self._computed(values)
        return number

    def with_values(self, values: Mapping[str, int]) -> Amount:
        """The formula with numbers for some of its sizes; a number where these are all."""
        names = self.names
        if all(name in values for name in names):
            return self.at(values)
        given = {name: values[name] for name in names if name in values}
        if not given:
            return self
        pattern = rf"\b({'|'.join(given)})\b"
        return Formula(re.sub(pattern, lambda match: str(given[match.group()]), self.text))

    @property
    def names(self) -> tuple[str, ...]:
        """The sizes that it has, each once."""
        return _names_in(self.text)

    def __str__(self) -> str:
        return self.text


Amount: TypeAlias = int | Formula
"""A number that may depend on named sizes: an extent, or bytes."""


def amount_at(amount: Amount, values: Mapping[str, int]) -> int:
    """The number for some values of the named sizes."""
    return amount if isinstance(amount, int) else amount.at(values)


class SizeBounds(NamedTuple):
    """The least and the greatest number of a size, and what divides it: "8..512 by 8"."""

    least: int
    most: int | None
    divisor: int = 1

    def __str__(self) -> str:
        steps = f" by {self.divisor}" if self.divisor > 1 else ""
        return f"{self.least}..{'' if self.most is None else self.most}{steps}"

    @property
    def typical(self) -> int:
        """The number assumed in costs, schedules and examples: three quarters of the way from the
        least to the greatest number, on a logarithmic scale.

        Without a greatest number it is 128. If the least number is not only the divisor but that
        of one window of a convolution, it has so many windows that the last tile of them is cheap.
        What suits many rows suits more of them, and tiles are made smaller for fewer.
        """
        least, most, divisor = self
        number = max(_TYPICAL, _TYPICAL_WINDOWS * least if least > divisor else 0)
        if most is not None:
            number = math.isqrt(math.isqrt(max(1, least) * most) * most)
        return max(least, number - number % divisor)


def usual_numbers(
    bounds: Mapping[str, SizeBounds], shapes: Iterable[Sequence[object]]
) -> dict[str, int]:
    """The numbers with which an open program is run and measured when nobody names others.

    A size that counts samples, by the shapes of the inputs, is 1, or the least that it may be;
    others have typical numbers.
    """
    batches = batch_sizes(shapes, bounds)
    return {
        name: max(each.least, each.divisor) if name in batches else each.typical
        for name, each in bounds.items()
    }


def whole_numbers(values: Mapping[str, Any]) -> dict[str, int]:
    """Numbers of sizes as Python's integers; a length that NumPy counted is one of NumPy's.

    Raises:  UsageError for anything else.
    """
    numbers: dict[str, int] = {}
    for name, value in values.items():
        try:
            numbers[name] = operator.index(value)
        except TypeError as error:
            raise UsageError(
                stage="sizes",
                where=f"size {name} = {value!r}",
                reason="it is not a whole number",
                remedy=f"give one: {name}=8",
            ) from error
    return numbers


def sizes_text(values: Mapping[str, int]) -> str:
    """Numbers of sizes as the option --at takes them: batch=1,sequence=128."""
    return ",".join(f"{name}={number}" for name, number in values.items())


def batch_sizes(shapes: Iterable[Sequence[object]], names: Iterable[str]) -> frozenset[str]:
    """The sizes that count samples.

    The name of such a size says batch; or it is the first extent of inputs with several axes, no
    other extent has it, and its name does not say length.
    """
    first, others = set[str](), set[str]()
    for shape in shapes:
        extents = [set(re.findall(r"[A-Za-z_]\w*", str(extent))) for extent in shape]
        if len(shape) > 1 and str(shape[0]).isidentifier():
            first.add(str(shape[0]))
        others.update(*extents[1:])
    return frozenset(
        name
        for name in names
        if _BATCH.search(name) or (name in first - others and not _LENGTH.search(name))
    )


def number_in(amount: Amount) -> int:
    """The number that an amount is.  Raises: UnsupportedError for a formula."""
    if isinstance(amount, int):
        return amount
    raise UnsupportedError(
        stage="sizes",
        where=f"the size {amount}",
        reason="it depends on named sizes, and a number is needed",
        remedy="give a number for each named size",
    )


def product_of_amounts(amounts: tuple[Amount, ...]) -> Amount:
    """The product of some amounts."""
    number = 1
    texts: list[str] = []
    for amount in amounts:
        if isinstance(amount, int):
            number *= amount
        else:
            texts.append(f"({amount})")
    if not texts or not number:
        return number
    return Formula(" * ".join([str(number), *texts] if number != 1 else texts))
