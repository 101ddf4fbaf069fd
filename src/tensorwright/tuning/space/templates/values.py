"""What a knob may be: sizes of tiles, orders of loops, words for loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import permutations, product
from typing import TypeVar

from tensorwright.base import UsageError, did_you_mean
from tensorwright.tuning.space.knobs import Annotation, Order, Policy

Sizes = tuple[int, ...]
Word = TypeVar("Word", bound=StrEnum)


def split_sizes(extent: int, parts: int, policy: Policy) -> Iterator[Sizes]:
    """The sizes of the inner parts of a split, outermost first; at most the extent together.

    With `Policy.FACTORS` their product divides the extent; a part that is a power of two may leave
    a tail.
    """
    divide = [n for n in range(1, extent + 1) if extent % n == 0]
    powers = [1 << n for n in range(extent.bit_length()) if 1 << n <= extent]
    match policy:
        case Policy.FACTORS:
            sizes = divide
        case Policy.POWER2:
            sizes = powers
        case Policy.VERBOSE:
            sizes = sorted({*divide, *powers})

    def grow(row: Sizes, whole: int) -> Iterator[Sizes]:
        if len(row) == parts - 1:
            yield row
            return
        for size in sizes:
            if size * whole > extent:
                break
            if policy is not Policy.FACTORS or extent % (size * whole) == 0:
                yield from grow((size, *row), size * whole)

    yield from grow((), 1)


def orders_of(
    name: str,
    loops: tuple[str, ...],
    policy: Order,
    chains: Sequence[Sequence[str]],
    candidates: Sequence[Sequence[str]],
) -> Iterator[tuple[str, ...]]:
    """The orders of some loops; UsageError for a given one that is not an order of them."""
    match policy:
        case Order.ALL:
            orders: Iterator[tuple[str, ...]] = permutations(loops)
        case Order.INTERLEAVE:
            orders = _merges(tuple(map(tuple, chains)))
        case Order.CANDIDATES:
            orders = (tuple(order) for order in candidates)
    for order in orders:
        if sorted(order) != sorted(loops):
            reason = f"{', '.join(order)} is not an order of {', '.join(loops)}"
            raise fault(name, reason, "name each of these loops once")
        yield order


def _merges(chains: tuple[tuple[str, ...], ...]) -> Iterator[tuple[str, ...]]:
    """Every way to merge chains, each keeping its order; the first chain outside first."""
    if not any(chains):
        yield ()
    for n, chain in enumerate(chains):
        if chain:
            rest = (*chains[:n], chain[1:], *chains[n + 1 :])
            yield from ((chain[0], *merged) for merged in _merges(rest))


def annotations_of(
    count: int, choices: frozenset[Annotation]
) -> tuple[tuple[Annotation, ...], ...]:
    """Annotations for `count` loops, those with most first."""
    lasts = [Annotation.VECTORIZE] if Annotation.VECTORIZE in choices else []
    lasts += [Annotation.NONE] if Annotation.NONE in choices else []
    depths = range(count, -1, -1) if Annotation.UNROLL in choices else range(1)
    rows: list[tuple[Annotation, ...]] = []
    for last, depth in product((*lasts, Annotation.UNROLL), depths):
        row = [Annotation.NONE] * (count - depth) + [Annotation.UNROLL] * depth
        if last is Annotation.VECTORIZE and count:
            row[-1] = last
        rows.append(tuple(row))
    if Annotation.NONE not in choices:
        rows = [row for row in rows if Annotation.NONE not in row]
    return tuple(dict.fromkeys(rows))


def member(kind: type[Word], word: Word | str) -> Word:
    """The member of this value.  Raises: UsageError if there is none."""
    members = {each.value: each for each in kind}
    if word not in members:
        remedy = did_you_mean(word, tuple(members), "one of " + ", ".join(members))
        raise fault(word, f"there is no {kind.__name__.lower()} of this name", remedy)
    return members[word]


def fault(name: str, reason: str, remedy: str = "") -> UsageError:
    """The error for a knob."""
    return UsageError(stage="tune", where=f"knob {name}", reason=reason, remedy=remedy)
