"""Sketches: traces whose numbers are open decisions, and the choices for each.

A space is a tuple of sketches for one program.  Every sketch has a default for each of its
decisions, chosen by rule: the first sketch with its defaults is the schedule of an untuned program.

A sketch is one structure: which stages are computed where, in which loops.  If a stage may be
computed in several loops, there is a sketch for each, all of one family.  A candidate is a sketch
and, for each of its choices, the number of a row: a vector of small integers, so that a population
is an array and each decision a column.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from math import isqrt, prod
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tensorwright import base, expr, schedule
from tensorwright.tuning.space.knobs import Knob


class _Named(Protocol):
    @property
    def name(self) -> str: ...


Named = TypeVar("Named", bound=_Named)


class Registered(Generic[Named]):
    """What users have registered, by name: it is asked before what comes with the package.

    kind   what it is, for a person
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._own: dict[str, Named] = {}

    def add(self, each: Named, origin: Callable[[Named], object] | None = None) -> Named:
        """Register one; it replaces the one of its name that has the same origin.

        Raises:  UsageError if another one of that name is registered.
        """
        registered = self._own.get(each.name)
        if registered is not None and (origin is None or origin(registered) != origin(each)):
            remedy = "give it another name, or unregister that one"
            raise self._fault(each.name, "a {} of this name is registered already", remedy)
        self._own[each.name] = each
        base.EXTENSIONS.add(f"{self._kind} {each.name}")
        return each

    def remove(self, name: str) -> None:
        """Forget one.  Raises: UsageError if there is none of that name."""
        base.EXTENSIONS.discard(f"{self._kind} {name}")
        if self._own.pop(name, None) is None:
            names = f"registered: {', '.join(self._own) or 'none'}"
            remedy = base.did_you_mean(name, self._own, names)
            raise self._fault(name, "no {} of this name is registered", remedy)

    def _fault(self, name: str, reason: str, remedy: str) -> base.UsageError:
        return base.UsageError(
            stage="tune",
            where=f"{self._kind} {name}",
            reason=reason.format(self._kind.split()[-1]),
            remedy=remedy,
        )

    @property
    def all(self) -> tuple[Named, ...]:
        """Those that are registered."""
        return tuple(self._own.values())


class Kind(StrEnum):
    """The subject of a choice; mutation treats each kind with its own probability."""

    TILE = "tile"
    UNROLL = "unroll"
    PARALLEL = "parallel"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Choice:
    """Decisions that are taken together: one of the rows of `values`, a number for each name.

    names    of the decisions              values   distinct rows, in ascending order
    default  the row chosen by rule        node     the stage that the decisions are about
    """

    names: tuple[str, ...]
    values: tuple[tuple[int, ...], ...]
    default: tuple[int, ...]
    kind: Kind = Kind.TILE
    node: str = ""
    _table: NDArray[np.int64] | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        name: str,
        values: tuple[int, ...],
        default: int,
        kind: Kind = Kind.TILE,
        node: str = "",
    ) -> Choice:
        """A choice of one decision."""
        return cls((name,), tuple((value,) for value in values), (default,), kind, node)

    @property
    def table(self) -> NDArray[np.int64]:
        """The rows as an array (rows, names); cached, because a lookup by the rows takes longer."""
        if self._table is None:
            object.__setattr__(self, "_table", _table_of(self.values))
        assert self._table is not None, "it has just been made"
        return self._table


@lru_cache(maxsize=4096)
def _table_of(values: tuple[tuple[int, ...], ...]) -> NDArray[np.int64]:
    table = np.array(values, np.int64)
    table.setflags(write=False)
    return table


@dataclass(frozen=True, slots=True)
class Limit:
    """An expression of decisions, and the most that it may be.

    what      the limited resource of a device, for a person: "over" it; "" for a limit by rule,
              the registers of a tile
    is_soft   the device runs what exceeds it, but badly
    """

    index: expr.Index
    most: int
    what: str = ""
    is_soft: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The decisions that it is about."""
        return tuple(sorted(decision.name for decision in expr.decisions_of(self.index)))

    def holds(self, decisions: Mapping[str, Any]) -> Any:
        """Whether decisions keep to it: a bool, or for columns of decisions a column of bools."""
        return self.value(decisions) <= self.most

    def value(self, decisions: Mapping[str, Any]) -> Any:
        """The amount that may not exceed `most`: a number, or a column."""
        return expr.evaluate_index(_of_variables(self.index), lambda each: decisions[each.name])


@lru_cache(maxsize=1024)
def _of_variables(index: expr.Index) -> expr.Index:
    """An expression with a variable for each decision, which may stand for a column."""
    return expr.substitute(index, {each: expr.Var(each.name) for each in expr.decisions_of(index)})


_MOST_COUNTED = 1_000_000  # combinations of limited decisions, of which the valid are counted
_DRAWS = 200  # tries of a sample, before the decisions chosen by rule replace it


@dataclass(frozen=True, slots=True)
class Sketch:
    """A trace with open decisions, and which combinations of them make sense.

    The decisions chosen by rule keep to the limits. `family` is the same for sketches that differ
    only in where stages are computed; the name if "".

    knobs   of the template that it is from, in order
    state   of the program after the trace, if it is at hand: it need not be replayed
    """

    name: str
    trace: schedule.Trace
    choices: tuple[Choice, ...]
    limits: tuple[Limit, ...] = ()
    family: str = ""
    knobs: tuple[Knob, ...] = ()
    state: schedule.ScheduleState | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.family:
            object.__setattr__(self, "family", self.name)

    @property
    def size(self) -> int:
        """The number of its schedules; an upper bound if counting takes long."""
        limited = {name for limit in self.limits for name in limit.names}
        bound = [choice for choice in self.choices if limited & set(choice.names)]
        free = prod(len(choice.values) for choice in self.choices if choice not in bound)
        combinations = prod(len(choice.values) for choice in bound)
        if not limited or combinations > _MOST_COUNTED:
            return free * combinations
        genes = np.indices([len(choice.values) for choice in bound]).reshape(len(bound), -1).T
        return free * int(replace(self, choices=tuple(bound)).valid(genes).sum())

    def is_valid(self, decisions: Mapping[str, int]) -> bool:
        """Whether decisions keep to the limits."""
        return all(limit.holds(decisions) for limit in self.limits)

    @property
    def defaults(self) -> dict[str, int]:
        """The decisions chosen by rule."""
        return _named(self.choices, tuple(choice.default for choice in self.choices))

    def bound(self, decisions: Mapping[str, int]) -> schedule.Trace:
        """The trace with its decisions taken."""
        return schedule.bind(self.trace, decisions)

    def sample(
        self, random_source: random.Random, cut: Counter[str] | None = None
    ) -> dict[str, int]:
        """Decisions drawn uniformly from those within the limits; `cut` counts the others."""
        for _ in range(_DRAWS):
            rows = tuple(random_source.choice(each.values) for each in self.choices)
            drawn = _named(self.choices, rows)
            broken = next((each for each in self.limits if not each.holds(drawn)), None)
            if broken is None:
                return drawn
            if cut is not None and broken.what:
                cut[broken.what] += 1
        return self.defaults

    # The same for arrays of candidates

    def columns(self, genes: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        """The decisions of many candidates, a column for each name.

        Shapes:  genes (candidates, choices): the number of a row for each choice.
        """
        columns: dict[str, NDArray[np.int64]] = {}
        for choice, gene in zip(self.choices, genes.T, strict=True):
            rows = choice.table[gene]
            columns |= dict(zip(choice.names, rows.T, strict=True))
        return columns

    def valid(self, genes: NDArray[np.int64], cut: Counter[str] | None = None) -> NDArray[np.bool_]:
        """Which candidates keep to the limits; `cut` counts the others by their device limit."""
        columns = self.columns(genes)
        is_kept = np.ones(len(genes), np.bool_)
        for limit in self.limits:
            remains = is_kept & limit.holds(columns)
            if cut is not None and limit.what:
                cut[limit.what] += int(is_kept.sum() - remains.sum())
            is_kept = remains
        return is_kept

    def refused(self, samples: int = 20_000, seed: int = 0) -> dict[str, float]:
        """The share of combinations (or of a sample of them) that each device limit excludes."""
        limits = [limit for limit in self.limits if limit.what]
        counts = [len(choice.values) for choice in self.choices]
        if not limits or not counts:
            return {}
        if prod(counts) <= samples:
            genes = np.indices(counts).reshape(len(counts), -1).T
        else:
            genes = np.random.default_rng(seed).integers(0, counts, (samples, len(counts)))
        columns = self.columns(genes)
        kept: dict[str, NDArray[np.bool_]] = {}
        for limit in limits:
            is_within = kept.get(limit.what, np.ones(len(genes), np.bool_))
            kept[limit.what] = is_within & limit.holds(columns)
        return {what: 1.0 - float(each.mean()) for what, each in kept.items() if not each.all()}

    def genes_of(self, decisions: Mapping[str, int]) -> tuple[int, ...] | None:
        """The rows of decisions; None if they are not of this sketch."""
        genes: list[int] = []
        names = {name for choice in self.choices for name in choice.names}
        if names != set(decisions):
            return None
        for choice in self.choices:
            row = tuple(decisions[name] for name in choice.names)
            if row not in choice.values:
                return None
            genes.append(choice.values.index(row))
        return tuple(genes)

    def decisions_of(self, genes: tuple[int, ...]) -> dict[str, int]:
        """The decisions of rows."""
        rows = tuple(each.values[gene] for each, gene in zip(self.choices, genes, strict=True))
        return _named(self.choices, rows)


def _named(
    choices: tuple[Choice, ...] | list[Choice], rows: tuple[tuple[int, ...], ...]
) -> dict[str, int]:
    """Decisions by name."""
    return {
        name: value
        for choice, row in zip(choices, rows, strict=True)
        for name, value in zip(choice.names, row, strict=True)
    }


@dataclass(frozen=True, slots=True)
class Space:
    """All schedules that a search may try for one program.

    cut   how many drawn candidates the device would refuse, by the limit; searches add to it
    """

    sketches: tuple[Sketch, ...]
    cut: Counter[str] = field(default_factory=Counter, compare=False, repr=False)

    @property
    def size(self) -> int:
        """The number of schedules of the space."""
        return sum(sketch.size for sketch in self.sketches)

    @property
    def default_trace(self) -> schedule.Trace:
        """The schedule chosen by rule."""
        first = self.sketches[0]
        return first.bound(first.defaults)

    def locate(
        self, trace: str, decisions: Mapping[str, int]
    ) -> tuple[int, tuple[int, ...]] | None:
        """The number of the sketch that makes a trace by decisions, and their rows; or None."""
        for number, sketch in enumerate(self.sketches):
            rows = sketch.genes_of(decisions)
            if rows is not None and schedule.format_trace(sketch.bound(decisions)) == trace:
                return number, rows
        return None

    def __str__(self) -> str:
        """The number of schedules, and for each family its choices with their numbers of values."""
        families: dict[str, list[Sketch]] = {}
        for sketch in self.sketches:
            families.setdefault(sketch.family, []).append(sketch)
        lines = [f"{self.size:,} schedules, {len(self.sketches)} sketches"]
        for family, sketches in families.items():
            size = sum(sketch.size for sketch in sketches)
            lines.append(f"  {family}: {size:,} schedules, {len(sketches)} sketches")
            counts = {name: str(count) for name, count in _counts(sketches).items()}
            width = max((len(name) for name in counts), default=0)
            lines += [f"    {name:{width}}  {count} values" for name, count in counts.items()]
            refused = {what: cut for each in sketches for what, cut in each.refused().items()}
            lines += [f"    {cut:.0%} cut off: over {what}" for what, cut in refused.items()]
        return "\n".join(lines)


def _counts(sketches: Iterable[Sketch]) -> dict[str, int]:
    """The number of values of every knob, and of every choice without a knob, in some sketches."""
    values: dict[str, set[object]] = {}
    for sketch in sketches:
        rows = {name: choice.values for choice in sketch.choices for name in choice.names}
        for knob in sketch.knobs:
            own = rows.get(knob.decisions[0], ()) if knob.decisions else (knob.value,)
            values.setdefault(knob.name, set()).update(own)
        named = {name for knob in sketch.knobs for name in knob.decisions}
        for choice in sketch.choices:
            if not named & set(choice.names):
                values.setdefault(", ".join(choice.names), set()).update(choice.values)
    return {name: len(each) for name, each in values.items()}


class SketchBuilder:
    """Grow a sketch step by step; mutable, used inside one function.

    Each step is checked and applied at once, with open decisions. So an illegal step fails in the
    code that takes it, and not in the middle of a search.
    """

    def __init__(self, state: schedule.ScheduleState) -> None:
        self.state = state
        self.steps: list[schedule.Primitive] = []
        self.choices: list[Choice] = []
        self.limits: list[Limit] = []

    def do(self, step: schedule.Primitive) -> None:
        """Append a step.  Raises: ScheduleError if it is illegal."""
        step.check(self.state)
        if isinstance(step, schedule.Split) and step.tail is schedule.Tail.SHIFT:
            self._keep_within(step)
        self.state = schedule.applied(step, self.state)
        self.steps.append(step)

    def _keep_within(self, step: schedule.Split) -> None:
        """Cut off what would make a tile that is shifted back longer than its whole loop."""
        tile = prod(step.factors, start=1)
        extent = step.extent(self.state) if expr.decisions_of(tile) else tile
        if isinstance(extent, int):
            columns = ((each.names, zip(*each.values, strict=True)) for each in self.choices)
            most = {name: max(rows) for pair in columns for name, rows in zip(*pair, strict=True)}
            if not Limit(tile, extent).holds(most):
                self.limit(tile, extent)

    def join(self, continued: SketchBuilder) -> None:
        """Take over the steps of another builder that began with the state of this one."""
        self.state = continued.state
        self.steps += continued.steps
        self.choices += continued.choices
        self.limits += continued.limits

    def choose(
        self,
        name: str,
        values: tuple[int, ...],
        default: int,
        kind: Kind = Kind.TILE,
        node: str = "",
    ) -> expr.Decision | int:
        """A decision over the values; a plain number if there is only one."""
        rows = tuple((value,) for value in values)
        return self.choose_rows((name,), rows, (default,), kind, node)[0]

    def choose_rows(
        self,
        names: tuple[str, ...],
        rows: tuple[tuple[int, ...], ...],
        default: tuple[int, ...],
        kind: Kind = Kind.TILE,
        node: str = "",
    ) -> tuple[expr.Decision | int, ...]:
        """Decisions that are taken together; plain numbers if there is only one row."""
        kept = tuple(sorted({*rows, default}))
        if len(kept) == 1:
            return kept[0]
        self.choices.append(Choice(names, kept, default, kind, node))
        return tuple(expr.Decision(name) for name in names)

    def limit(self, amount: expr.Index, most: int) -> None:
        """Keep an expression of decisions from exceeding `most`.

        The choice by rule stays possible: where it exceeds `most`, what it takes is the limit.
        """
        limit = Limit(amount, most)
        if limit.names:
            defaults = _named(self.choices, tuple(choice.default for choice in self.choices))
            self.limits.append(replace(limit, most=max(most, limit.value(defaults))))

    def sketch(self, name: str, family: str = "", knobs: tuple[Knob, ...] = ()) -> Sketch:
        """The sketch that was built."""
        choices, limits = tuple(self.choices), tuple(self.limits)
        return Sketch(name, tuple(self.steps), choices, limits, family, knobs, self.state)


def distinct(sketches: Iterable[Sketch], key: Callable[[Sketch], Hashable]) -> Iterator[Sketch]:
    """The first sketch of each key, each asked for when it is wanted."""
    seen: set[Hashable] = set()
    for sketch in sketches:
        if key(sketch) not in seen:
            seen.add(key(sketch))
            yield sketch


def divisors(number: int, most: int) -> tuple[int, ...]:
    """The divisors of a number up to a limit, ascending."""
    low = [n for n in range(1, min(isqrt(number), most) + 1) if number % n == 0]
    high = (number // n for n in reversed(low) if n * n < number)
    return (*low, *(n for n in high if n <= most))


def powers(most: int) -> tuple[int, ...]:
    """The powers of two up to a limit, ascending."""
    return tuple(1 << n for n in range(most.bit_length()))


def factorisations(
    extent: int, levels: int, innermost: int, waste: float = 0.0
) -> tuple[tuple[int, ...], ...]:
    """Sizes of `levels` inner loops over an axis, outermost first, ascending.

    Their product divides the extent, or covers it with at most the share `waste` of iterations
    beyond it; the innermost is at most `innermost`.
    """
    rows: set[tuple[int, ...]] = set()

    def grow(row: tuple[int, ...], size: int) -> None:
        if len(row) == levels:
            rows.add(row)
            return
        most = innermost if not row else extent
        for factor in range(1, min(most, extent // size) + 1):
            whole = size * factor
            beyond = -(-extent // whole) * whole - extent
            if beyond <= waste * extent:
                grow((factor, *row), whole)

    grow((), 1)
    return tuple(sorted(rows))
