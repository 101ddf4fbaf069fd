"""Facts about the extents of a rule's inputs, and their consequences.

    known = assume([x.1 = y.0, 2 divides x.0])
    known.normal(3*y.0)               3*x.1, because y.0 is solved
    known.entails(2*(x.0 // 2) = x.0) True; known.entails(x.1 = x.0) is False: it need not be

Equalities are solved: an extent is replaced by what it equals, so that sizes that are equal under
the assumptions have one normal form.  A number that a given size divides is replaced by a product
with a fresh extent.  The rest (lower bounds, equalities without a solution) is kept and used by
`entails`.  Everything is conservative: an entailed fact is true, another fact may be true as well.

Shapes of terms: one rule per operator, for integers and for sizes that are expressions.

    operator_named("relu").result((), ((2, 3),), needs)             (2, 3)
    matmul at (2, 3), (4, 5)                                        Misfit: 3 is not 4
    matmul at (x.0, x.1), (y.0, y.1)    (x.0, y.1), and needs.facts has x.1 = y.0

A shape rule computes with sizes and states what it needs through `Needs`: for integers the need
is checked at once, for expressions it becomes a fact that the shapes must satisfy.  It raises
IllTyped where there is no such term.  `RewriteOperator.result` and `meaning.infer` return a value
instead, the shape or a Misfit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations_with_replacement
from math import gcd
from typing import TypeAlias, TypeVar

from tensorwright.base import InternalError
from tensorwright.expr import FloorDiv, divide_terms, substitute, terms_of
from tensorwright.rewriting.dims import Extent, Shape, Size, atoms_of
from tensorwright.rewriting.terms import AtLeast, Divides, Equal, Fact, Param


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Facts about extents in solved form.

    solved     (extent, size) pairs: the extent equals the size, which has no solved extents
    zero       sizes that are zero and could not be solved
    positive   sizes that are at least zero
    divisions  (divisor, number) pairs that could not be solved
    """

    solved: tuple[tuple[Extent, Size], ...] = ()
    zero: tuple[Size, ...] = ()
    positive: tuple[Size, ...] = ()
    divisions: tuple[tuple[Size, Size], ...] = ()
    _size_of: dict[Extent, Size] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        self._size_of.update(self.solved)

    @property
    def quotients(self) -> tuple[tuple[Extent, Size], ...]:
        """Solutions that have a fresh extent, whose name begins with an underscore."""
        return tuple(
            (extent, size)
            for extent, size in self.solved
            if any(atom.name.startswith("_") for atom in (extent, *atoms_of(size)))
        )

    def normal(self, size: Size) -> Size:
        """The size in terms of unsolved extents."""
        return substitute(size, self._size_of)

    def entails(self, fact: Fact) -> bool:
        """Whether the fact follows, for all positive extents."""
        match fact:
            case Equal(left, right):
                gap = self.normal(left) - self.normal(right)
                return gap == 0 or gap in self.zero or -gap in self.zero
            case AtLeast(left, right):
                return self._is_nonnegative(self.normal(left) - self.normal(right))
            case Divides(divisor, number):
                return self._divides(self.normal(divisor), self.normal(number))

    def contradicts(self, fact: Fact) -> bool:
        """Whether the fact is false for all positive extents; False where that is not known."""
        match fact:
            case Equal(left, right):
                gap = self.normal(left) - self.normal(right)
                return self._is_nonnegative(gap - 1) or self._is_nonnegative(-gap - 1)
            case AtLeast(left, right):
                return self._is_nonnegative(self.normal(right) - self.normal(left) - 1)
            case Divides(divisor, number):
                below, above = self.normal(divisor), self.normal(number)
                return isinstance(below, int) and isinstance(above, int) and bool(above % below)

    def _is_nonnegative(self, gap: Size) -> bool:
        """gap >= 0: by the signs of its terms, alone or less one or two sizes that are at least
        zero.

        A gap that is negative where all extents are 1 is refused at once.
        """
        least = _at_ones(gap)
        if least >= 0 and _is_nonnegative(gap):
            return True
        if any(_is_nonnegative(gap - each) for each in self.positive if _at_ones(each) <= least):
            return True
        pairs = combinations_with_replacement(self.positive, 2)
        if any(
            _is_nonnegative(gap - one - other)
            for one, other in pairs
            if _at_ones(one) + _at_ones(other) <= least
        ):
            return True
        cleared = _cleared(gap)
        return cleared is not None and self._is_nonnegative(cleared)

    def _divides(self, divisor: Size, number: Size) -> bool:
        if divisor == 1 or number == 0:
            return True
        if isinstance(number, int):
            return isinstance(divisor, int) and number % divisor == 0
        if _is_multiple(number, divisor):
            return True
        for below, above in self.divisions:
            if below == divisor and above != 0:
                rest = number - above
                if _is_multiple(number, above) or rest == 0:
                    return True
                if _length(rest) < _length(number) and self._divides(divisor, rest):
                    return True
        return False


NOTHING_ASSUMED = Assumptions()


def assume(facts: Iterable[Fact]) -> Assumptions | None:
    """Solve facts; None where they contradict each other for all positive extents."""
    assumptions = NOTHING_ASSUMED
    waiting = list(facts)
    fresh = 0
    for _ in range(5 * len(waiting) + 5):
        if not waiting:
            break
        fact = waiting.pop(0)
        if assumptions.contradicts(fact):
            return None
        if assumptions.entails(fact):
            continue
        solution: tuple[Extent, Size] | None = None
        match fact:
            case Equal(left, right):
                gap = _reduced(assumptions.normal(left) - assumptions.normal(right))
                factors = _factors_of_one(gap)
                if factors:
                    waiting.extend(Equal(extent, 1) for extent in factors)
                    continue
                solution = _solution(gap)
            case Divides(divisor, number):
                below, above = assumptions.normal(divisor), assumptions.normal(number)
                if above != 0 and _is_multiple(below, above):  # it divides the number: once
                    waiting.append(Equal(below // above, 1))
                    continue
                if isinstance(above, Extent) and above not in atoms_of(below):
                    solution = above, Extent(f"_{above.name}{above.axis}_{fresh}", 0) * below
                fresh += 1
            case AtLeast():
                pass
        if solution is None:
            assumptions = _keep(assumptions, fact)
            continue
        assumptions, again = _bind(assumptions, *solution)
        waiting.extend(again)
    return assumptions


def _keep(assumptions: Assumptions, fact: Fact) -> Assumptions:
    match fact:
        case Equal(left, right):
            gap = assumptions.normal(left) - assumptions.normal(right)
            return replace(assumptions, zero=(*assumptions.zero, gap))
        case AtLeast(left, right):
            gap = assumptions.normal(left) - assumptions.normal(right)
            return replace(assumptions, positive=(*assumptions.positive, gap))
        case Divides(divisor, number):
            pair = (assumptions.normal(divisor), assumptions.normal(number))
            return replace(assumptions, divisions=(*assumptions.divisions, pair))


def _bind(assumptions: Assumptions, extent: Extent, size: Size) -> tuple[Assumptions, list[Fact]]:
    """Solve for one extent, which is positive; return the kept facts, to be examined again."""
    one = {extent: size}
    solved = tuple((name, substitute(value, one)) for name, value in assumptions.solved)
    again: list[Fact] = [AtLeast(size, 1)]
    again += [Equal(gap, 0) for gap in assumptions.zero]
    again += [AtLeast(gap, 0) for gap in assumptions.positive]
    again += [Divides(below, above) for below, above in assumptions.divisions]
    return Assumptions((*solved, (extent, size))), again


def _reduced(gap: Size) -> Size:
    """Without the factors that all of its terms have: extents and numbers that are not zero."""
    if isinstance(gap, int):
        return gap
    first, *others = (monomial for monomial, _ in terms_of(gap))
    for atom in first:
        if isinstance(atom, Extent) and all(atom in monomial for monomial in others):
            return _reduced(gap // atom)
    divisor = gcd(*(factor for _, factor in terms_of(gap)))
    return gap // divisor if divisor > 1 else gap


def _factors_of_one(gap: Size) -> tuple[Extent, ...]:
    """The extents whose product is 1 where `gap` is zero; none where it does not say so."""
    if isinstance(gap, int) or len(terms_of(gap)) != 2:
        return ()
    (product, factor), (rest, number) = terms_of(gap)
    extents = tuple(atom for atom in product if isinstance(atom, Extent))
    if rest or factor + number != 0 or abs(factor) != 1 or len(extents) != len(product):
        return ()
    return extents if len(extents) > 1 else ()


def _solution(gap: Size) -> tuple[Extent, Size] | None:
    """An extent that `gap = 0` gives in terms of others: it occurs once, alone, with factor 1."""
    if isinstance(gap, int):
        return None
    for monomial, factor in reversed(terms_of(gap)):
        if len(monomial) != 1 or abs(factor) != 1 or not isinstance(monomial[0], Extent):
            continue
        extent = monomial[0]
        rest = gap - extent * factor
        if extent not in atoms_of(rest):
            return extent, rest * -factor
    return None


def _length(size: Size) -> int:
    return 1 if isinstance(size, int) else len(terms_of(size))


def _is_multiple(number: Size, divisor: Size) -> bool:
    """Whether a quotient has no remainder."""
    return divide_terms(number, divisor)[1] == 0


def _at_ones(size: Size) -> int:
    """The number in a size whose extents are each 1 more than a natural number."""
    return sum(
        factor
        for monomial, factor in terms_of(size)
        if not any(isinstance(atom, FloorDiv) for atom in monomial)
    )


@lru_cache(maxsize=1 << 16)
def _is_nonnegative(gap: Size) -> bool:
    """By signs: with each extent 1 more than a natural number, no coefficient is negative."""
    if isinstance(gap, int):
        return gap >= 0
    shifted: Size = 0
    for monomial, factor in terms_of(gap):
        product: Size = factor
        for atom in monomial:
            if isinstance(atom, FloorDiv) and not _is_nonnegative(atom.dividend):
                return False
            product = product * (atom + int(isinstance(atom, Extent)))
        shifted = shifted + product
    return all(factor >= 0 for _, factor in terms_of(shifted))


def _cleared(gap: Size) -> Size | None:
    """A size that is negative exactly where `gap` is: n + d * rest for `n // d + rest`."""
    if isinstance(gap, int):
        return None
    for monomial, factor in terms_of(gap):
        if factor == 1 and len(monomial) == 1 and isinstance(monomial[0], FloorDiv):
            quotient = monomial[0]
            if _is_nonnegative(quotient.divisor - 1):
                return quotient.dividend + quotient.divisor * (gap - quotient)
    return None


class IllTyped(Exception):
    """The error of a shape rule where the shapes do not fit the operator; the text says why."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """The answer that there is no such term, and why."""

    reason: str


Answer = TypeVar("Answer")


def fitting(answer: Answer | Misfit) -> Answer:
    """The answer for terms that are known to fit.

    Raises:  InternalError where they do not; a caller that is not sure compares with Misfit.
    """
    if isinstance(answer, Misfit):
        raise InternalError(
            stage="rules", where="terms that are known to fit", reason=answer.reason
        )
    return answer


class Needs:
    """Checks what can be decided, and keeps the rest as facts, in order, each once."""

    def __init__(self) -> None:
        self._facts: dict[Fact, None] = {}
        self._choices: dict[tuple[Size, Size], None] = {}

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts that the shapes must satisfy besides."""
        return tuple(self._facts)

    @property
    def choices(self) -> tuple[tuple[Size, Size], ...]:
        """(own, wanted) sizes: the first is 1, or equal to the second."""
        return tuple(self._choices)

    def hold(self, decision: bool, reason: str) -> None:
        """Refuse where something that does not depend on sizes is wrong."""
        if not decision:
            raise IllTyped(reason)

    def rank(self, shape: Shape, *ranks: int) -> None:
        """Refuse other ranks."""
        self.hold(len(shape) in ranks, f"rank {len(shape)}")

    def equal(self, left: Size, right: Size) -> None:
        """Two sizes must be equal."""
        difference = left - right
        if isinstance(difference, int):
            self.hold(difference == 0, f"{left} is not {right}")
        else:
            self._facts.setdefault(Equal(left, right))

    def equal_shapes(self, left: Sequence[Size], right: Sequence[Size]) -> None:
        """Two shapes must be equal."""
        self.hold(len(left) == len(right), "ranks differ")
        for a, b in zip(left, right, strict=True):
            self.equal(a, b)

    def at_least(self, left: Size, right: Size) -> None:
        """`left >= right` must hold."""
        difference = left - right
        if isinstance(difference, int):
            self.hold(difference >= 0, f"{left} is less than {right}")
        else:
            self._facts.setdefault(AtLeast(left, right))

    def stretches(self, own: Size, wanted: Size) -> None:
        """`own` is 1 or `wanted`: what can be broadcast."""
        if own in (1, wanted):
            return
        if isinstance(own, int) and isinstance(wanted, int):
            raise IllTyped(f"{own} cannot be stretched to {wanted}")
        self._choices.setdefault((own, wanted))

    def divides(self, divisor: Size, number: Size) -> None:
        """`divisor` must divide `number`."""
        if isinstance(divisor, int) and isinstance(number, int):
            self.hold(number % divisor == 0, f"{divisor} does not divide {number}")
        elif divisor not in (1, number):
            self._facts.setdefault(Divides(divisor, number))


Params: TypeAlias = tuple[Param, ...]
Shapes: TypeAlias = tuple[Shape, ...]
ShapeRule: TypeAlias = Callable[[Params, Shapes, Needs], Shape]
"""The shape of an application from parameters and shapes of arguments; raises IllTyped."""
