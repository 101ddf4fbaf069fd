"""Named sizes: extents that are known only when a network runs, as index expressions.

    n = named_size("n", greatest=512, divisor=8)    n % 8 is 0, and (n // 8) * 8 is n
    2*n + 1, n // 16                                their text, which `parse_size` reads
    with_sizes(2*n + 1, {"n": 64})                  129
    n.constraints                                   "n <= 512, n % 8 == 0"

A size with a divisor is the divisor times an atom, which stands for the quotient. So divisibility
by the divisor needs no proof.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

from tensorwright.base import SizeBounds, SizeOperations, read_size
from tensorwright.expr.index import nodes
from tensorwright.expr.index.traversal import substitute, symbols_of
from tensorwright.expr.symbolic import refused

_FUNCTIONS = ("min", "max")  # of the text of sizes


@dataclass(frozen=True, slots=True, eq=False)
class NamedSize(nodes.Symbol):
    """A named size, divided by the number that divides it; `named_size` makes the size of it.

    least, most   what the quotient may be
    """

    name: str
    divisor: int
    least: int
    most: int | None

    def times(self, factor: int) -> tuple[int, str]:
        """A multiple of the divisor is written as one of the size."""
        is_whole = factor % self.divisor == 0
        return (factor // self.divisor, self.name) if is_whole else (factor, f"({self})")

    def __str__(self) -> str:
        return self.name if self.divisor == 1 else f"{self.name}/{self.divisor}"

    @property
    def bounds(self) -> SizeBounds:
        """The bounds of the size itself."""
        most = None if self.most is None else self.most * self.divisor
        return SizeBounds(self.least * self.divisor, most, self.divisor)

    @property
    def constraints(self) -> str:
        """The constraints of the size besides being 1 or more: "4 <= n <= 512, n % 4 == 0"."""
        least, most, _ = self.bounds
        low = f"{least} <= " if self.least != 1 else ""
        high = f" <= {most}" if most is not None else ""
        parts = [f"{low}{self.name}{high}"] if low or high else []
        parts += [f"{self.name} % {self.divisor} == 0"] if self.divisor > 1 else []
        return ", ".join(parts)

    def checked(self, number: int) -> int:
        """The quotient, of a number that is given for the size.

        Raises:  ExpressionError for a number that the size may not be.
        """
        try:
            if isinstance(number, bool):
                raise TypeError
            quotient, remainder = divmod(operator.index(number), self.divisor)
        except TypeError:
            raise refused(f"{self.name} = {number!r}", "a size is an integer") from None
        is_between = self.least <= quotient and (self.most is None or quotient <= self.most)
        if remainder or not is_between:
            wanted = self.constraints or f"1 <= {self.name}"
            raise refused(f"{self.name} = {number}", f"the size {self.name} fulfils {wanted}")
        return quotient


def named_size(
    name: str, least: int = 1, greatest: int | None = None, divisor: int = 1
) -> nodes.Index:
    """A size that is known by a name until a number is given for it.

    Raises:  ExpressionError for a name that is not an identifier, and where no number can be given.
    """
    if not str(name).isidentifier() or name in _FUNCTIONS:
        raise refused(f"size {name!r}", "the name of a size is an identifier", "n, batch, rows_2")
    numbers = (least, divisor, *(() if greatest is None else (greatest,)))
    if any(type(each) is not int for each in numbers):
        raise refused(f"size {name}", "its bounds and its divisor are integers")
    if least < 0 or divisor < 1:
        raise refused(f"size {name}", "a size is not negative, and its divisor is positive")
    low = -(-least // divisor)
    most = None if greatest is None else greatest // divisor
    if most is not None and most < low:
        reason = f"no multiple of {divisor} is between {least} and {greatest}"
        if divisor == 1:
            reason = f"its least number {least} is above its greatest number {greatest}"
        raise refused(f"size {name}", reason)
    return NamedSize(name, divisor, low, most) * divisor


def counted_size(name: str, greatest: int | None = None, least: int = 0) -> nodes.Index:
    """A size that is counted when a network runs; it may be 0 unless `least` says otherwise.

    Raises:  ExpressionError as `named_size`.
    """
    return named_size(name, least, None if greatest is None else max(1, greatest))


_CONSTRAINTS = r"(?:(?:(\d+) <= )?NAME(?: <= (\d+))?)?(?:, )?(?:NAME % (\d+) == 0)?"


def parse_named_size(name: str, constraints: str) -> nodes.Index:
    """Read the constraints of a size, the text of `NamedSize.constraints`.

    Raises:  ValueError for other text; ExpressionError for what no number fulfils.
    """
    match = re.fullmatch(_CONSTRAINTS.replace("NAME", re.escape(name)), constraints.strip())
    if match is None:
        raise ValueError(f"{constraints!r} does not say what {name} fulfils")
    least, greatest, divisor = match.groups()
    return named_size(name, int(least or 1), int(greatest) if greatest else None, int(divisor or 1))


def named_sizes_of(*expressions: nodes.Index) -> tuple[NamedSize, ...]:
    """The named sizes in some expressions, each once."""
    return tuple(each for each in symbols_of(*expressions) if isinstance(each, NamedSize))


def with_sizes(expression: nodes.Index, values: Mapping[str, int]) -> nodes.Index:
    """The expression with numbers for named sizes; those that are not named stay.

    Raises:  ExpressionError for a number that a size may not be.
    """
    atoms = [each for each in named_sizes_of(expression) if each.name in values]
    return substitute(expression, {each: each.checked(values[each.name]) for each in atoms})


def solved_size(extent: nodes.Index, number: int) -> tuple[NamedSize, int] | None:
    """The size that an extent determines, and its quotient: from 2*n + 1 = 9 that is n, 4.

    None where the extent is not a multiple of one size and a number more.
    Raises:  ValueError where the extent is never that number.
    """
    terms = dict(nodes.terms_of(extent))
    rest = number - terms.pop((), 0)
    if len(terms) != 1:
        return None
    ((monomial, factor),) = terms.items()
    if len(monomial) != 1 or not isinstance(monomial[0], NamedSize):
        return None
    if rest % factor or rest // factor < 0:
        raise ValueError(f"{extent} is never {number}")
    return monomial[0], rest // factor


def room_for(size: nodes.Index) -> nodes.Index:
    """An upper bound of a size that is largest where all named sizes are: n + 3 for n - m + 4.

    Memory that is laid out for the greatest sizes has that room.
    """
    match size:
        case int() | nodes.Symbol():
            return size
        case nodes.Poly(terms):
            return nodes.sum_of([_room_for_term(monomial, scale) for monomial, scale in terms])
        case nodes.FloorDiv(a, int() as b):
            return nodes.floor_div(room_for(a), b)
        case nodes.FloorDiv(a, _):
            return room_for(a)
        case nodes.ExactDiv(a, b):
            return nodes.ceil_div(room_for(a), b) if isinstance(b, int) else room_for(a)
        case nodes.Mod(_, b):
            return room_for(b)
        case nodes.Min(a, b):
            return nodes.minimum(room_for(a), room_for(b))
        case nodes.Max(a, b):
            return nodes.maximum(room_for(a), room_for(b))
    raise TypeError(f"not a size: {size!r}")


def _room_for_term(monomial: tuple[nodes.IndexExpr, ...], scale: int) -> nodes.Index:
    if scale > 0:
        return prod(map(room_for, monomial), start=scale)
    return scale * prod(atom.least if isinstance(atom, nodes.Symbol) else 0 for atom in monomial)


_OPERATIONS: SizeOperations[nodes.Index] = SizeOperations(
    lambda number: number,
    {
        "+": operator.add,
        "-": operator.sub,
        "*": operator.mul,
        "//": nodes.floor_div,
        "/": nodes.exact_div,
        "%": nodes.mod,
        "min": nodes.minimum,
        "max": nodes.maximum,
    },
)


def parse_size(text: str, symbol: Callable[[str], nodes.Index | None]) -> nodes.Index:
    """Read what `str` of a size prints.

    symbol   what a name means, `n` or `x.0`; None where it means nothing

    Raises:  ValueError that names the place.
    """
    return read_size(text, symbol, _OPERATIONS)
