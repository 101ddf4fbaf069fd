"""A configuration: a template names its knobs in it, and gets their values.

A template runs once for each combination of values of its structural knobs. The values advance from
run to run like the digits of an odometer. A knob that only some values lead to is defined in those
runs only.

What a knob may be: sizes of tiles, orders of loops, words for loops.

The results of knobs, which a template applies to its stages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import permutations, product
from math import log2, prod
from typing import Any, TypeVar

from tensorwright import schedule
from tensorwright.base import UsageError, did_you_mean
from tensorwright.expr import Axis, Index
from tensorwright.tuning.space.knobs import REST, Annotation, Entity, Knob, Order, Policy, Scalar
from tensorwright.tuning.space.sketch import Kind, SketchBuilder

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


@dataclass(frozen=True, slots=True)
class SplitKnob:
    """Sizes of nested tiles, and what happens to the last ones if they do not divide.

    sizes   of the inner parts, outermost first; the outermost part has the rest
    """

    name: str
    sizes: tuple[Index, ...]
    tail: schedule.Tail

    def apply(self, builder: SketchBuilder, stage: str, loop: str) -> tuple[str, ...]:
        """Split a loop by these sizes; gives the new loops, outermost first."""
        step = schedule.Split(stage, loop, self.sizes, self.tail)
        builder.do(step)
        return step.children


@dataclass(frozen=True, slots=True)
class ReorderKnob:
    """An order of some loops."""

    name: str
    loops: tuple[str, ...]

    def apply(self, builder: SketchBuilder, stage: str) -> tuple[str, ...]:
        """Order the loops; gives them, outermost first."""
        builder.do(schedule.Reorder(stage, self.loops))
        return self.loops


@dataclass(frozen=True, slots=True)
class AnnotateKnob:
    """The annotations of some loops."""

    name: str
    loops: tuple[str, ...]
    annotations: tuple[Annotation, ...]

    def apply(self, builder: SketchBuilder, stage: str) -> None:
        """Annotate the loops."""
        for loop, annotation in zip(self.loops, self.annotations, strict=True):
            if annotation is Annotation.UNROLL:
                builder.do(schedule.Unroll(stage, loop))
            elif annotation is Annotation.VECTORIZE:
                builder.do(schedule.Vectorize(stage, loop))


@dataclass(frozen=True, slots=True)
class AtLoop:
    """In a loop of a stage that reads it."""

    host: str
    loop: str

    def __str__(self) -> str:
        return f"{self.host}.{self.loop}"


ROOT = "root"
INLINE = "inline"
Location = AtLoop | str
"""Where a stage is computed: in a loop, `ROOT` (whole, before its readers), or `INLINE`."""


@dataclass(frozen=True, slots=True)
class ComputeAtKnob:
    """Where a stage is computed."""

    name: str
    location: Location

    def apply(self, builder: SketchBuilder, stage: str) -> None:
        """Compute a stage there."""
        if isinstance(self.location, AtLoop):
            builder.do(schedule.ComputeAt(stage, self.location.host, self.location.loop))
        elif self.location == INLINE:
            builder.do(schedule.ComputeInline(stage))


T = TypeVar("T")
Filter = Callable[[Sizes], bool]
MOST_ROWS = 20_000  # values of one knob: more are a mistake, and would take long to list


class Configuration:
    """The knobs of one run of a template; mutable, used inside one function.

    target   what the program is compiled for, of the kind that the template is for
    knobs    named so far, in order; `structural` are those of them that give sketches
    Structural knobs (`define_knob`, `define_reorder`, `define_annotate`, `define_compute_at`) are
    known while the template runs, which may branch on them: each value gives a sketch.  The others
    (`define_split`, `define_number`) stay open: they are columns of a population.
    """

    def __init__(self, builder: SketchBuilder, target: Any, taken: Sequence[int] = ()) -> None:
        self.target = target
        self.knobs: list[Knob] = []
        self.structural: list[Knob] = []
        self._builder = builder
        self._taken = tuple(taken)
        self._forks: list[tuple[int, int]] = []  # the number that was taken, of so many

    # Open knobs

    def define_split(
        self,
        name: str,
        axis: Axis | int,
        parts: int = 2,
        policy: Policy | str = Policy.FACTORS,
        *,
        filter: Filter | None = None,
        candidates: Sequence[Sizes] | None = None,
        default: Sizes | None = None,
        tail: schedule.Tail | None = None,
        node: str = "",
    ) -> SplitKnob:
        """Into how many parts, and how large ones, a loop is split.

        axis        or its extent                     parts   how many loops it becomes, at least 2
        filter      which sizes are tried: it gets those of all parts, outermost first
        candidates  the sizes to try, without the outermost, in place of what the policy says
        default     of them the one that is nearest is chosen by rule; the first if None
        tail        what happens to tiles that do not divide; a guard if None
        node        the stage that it is about: crossover takes what is about one stage together
        Raises:  UsageError if nothing is left to try.
        """
        extent = axis if isinstance(axis, int) else axis.length
        rows = candidates
        if rows is None:
            rows = tuple(split_sizes(extent, parts, member(Policy, policy)))
        rows = tuple(
            sorted(
                {row for row in rows if (filter is None or filter((-(-extent // prod(row)), *row)))}
            )
        )
        self._check(name, len(rows))
        chosen = (
            rows[0]
            if default is None
            else min(
                rows,
                key=lambda row: (
                    sum(abs(log2(a / b)) for a, b in zip(row, default, strict=True)),
                    row,
                ),
            )
        )
        names = tuple(f"{name}_{n}" for n in range(1, parts)) if parts > 2 else (name,)
        sizes = self._builder.choose_rows(names, rows, chosen, Kind.TILE, node)
        if tail is None:
            tail = schedule.Tail.GUARD
        if all(extent % prod(row) == 0 for row in rows):
            tail = schedule.Tail.EXACT
        self.knobs.append(Knob(name, Entity.SPLIT, (REST, *sizes)))
        return SplitKnob(name, sizes, tail)

    def define_number(
        self,
        name: str,
        values: Sequence[int],
        default: int | None = None,
        kind: Kind = Kind.OTHER,
        node: str = "",
    ) -> Index:
        """A positive number that the template does not branch on: an extent, an unroll depth."""
        self._check(name, len(values))
        first = values[0] if default is None else default
        number = self._builder.choose(name, tuple(values), first, kind, node)
        self.knobs.append(Knob(name, Entity.OTHER, number))
        return number

    # Structural knobs

    def define_knob(self, name: str, values: Sequence[T]) -> T:
        """Any value that the template branches on; the first is chosen by rule."""
        self._check(name, len(values))
        value = values[self._fork(len(values))]
        plain: Scalar = value if isinstance(value, int | float | str) else str(value)
        self._fix(Knob(name, Entity.OTHER, plain))
        return value

    def define_reorder(
        self,
        name: str,
        loops: Sequence[str],
        policy: Order | str = Order.ALL,
        *,
        chains: Sequence[Sequence[str]] = (),
        candidates: Sequence[Sequence[str]] = (),
    ) -> ReorderKnob:
        """In which order some loops are nested; as they are given, by rule, if that is tried.

        chains       for `Order.INTERLEAVE`: loops that keep their order; together all of them
        candidates   for `Order.CANDIDATES`: the orders, the first by rule
        """
        orders = tuple(orders_of(name, tuple(loops), member(Order, policy), chains, candidates))
        self._check(name, len(orders))
        order = orders[self._fork(len(orders))]
        self._fix(Knob(name, Entity.REORDER, tuple(list(loops).index(loop) for loop in order)))
        return ReorderKnob(name, order)

    def define_annotate(
        self,
        name: str,
        loops: Sequence[str],
        choices: Sequence[Annotation | str] = tuple(Annotation),
        *,
        candidates: Sequence[Sequence[Annotation | str]] = (),
    ) -> AnnotateKnob:
        """The annotations of some loops, outermost first.

        choices      of unroll, vectorize and none: the innermost loop may be vectorised, and
                     any number of loops from the inside unrolled; the most of both by rule
        candidates   a word for each loop, in place of what follows from the choices
        """
        rows = tuple(tuple(member(Annotation, word) for word in row) for row in candidates)
        if not rows:
            words = frozenset(member(Annotation, word) for word in choices)
            rows = annotations_of(len(loops), words)
        self._check(name, len(rows))
        row = rows[self._fork(len(rows))]
        self._fix(Knob(name, Entity.ANNOTATE, row))
        return AnnotateKnob(name, tuple(loops), row)

    def define_compute_at(self, name: str, places: Sequence[Location]) -> ComputeAtKnob:
        """Where a stage is computed; by rule, the first one."""
        self._check(name, len(places))
        location = places[self._fork(len(places))]
        self._fix(Knob(name, Entity.OTHER, str(location)))
        return ComputeAtKnob(name, location)

    def _fork(self, count: int) -> int:
        """The number of a structural knob's value in this run, below `count`."""
        depth = len(self._forks)
        number = self._taken[depth] if depth < len(self._taken) else 0
        self._forks.append((number, count))
        return number

    def _check(self, name: str, count: int) -> None:
        reason = ""
        if any(knob.name == name for knob in self.knobs):
            reason = "a knob of this name is defined already"
        if not count:
            reason = "it has no values"
        if count > MOST_ROWS:
            reason = f"it has {count:,} values, more than {MOST_ROWS:,}"
        if reason:
            raise fault(name, reason, "filter them, or give candidates" if count else "")

    def _fix(self, knob: Knob) -> None:
        self.knobs.append(knob)
        self.structural.append(knob)

    @property
    def following(self) -> tuple[int, ...] | None:
        """The first structural values of the next run; None after the last run."""
        forks = list(self._forks)
        while forks:
            number, count = forks.pop()
            if number + 1 < count:
                return (*(taken for taken, _ in forks), number + 1)
        return None
