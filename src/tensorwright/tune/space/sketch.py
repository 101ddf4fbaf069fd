"""Sketches: traces whose numbers are open decisions, and the choices for each.

A space is a tuple of sketches for one program.  Every sketch has a default for each of its
decisions, chosen by rule: the first sketch with its defaults is the schedule of an untuned program.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from tensorwright.expr import Decision, Index
from tensorwright.schedule import Primitive, ScheduleState, Trace, bind


@dataclass(frozen=True, slots=True)
class Choice:
    """A decision: its name, the values that it may take, ascending, and the one chosen by rule."""

    name: str
    values: tuple[int, ...]
    default: int


@dataclass(frozen=True, slots=True)
class Limit:
    """The product of the decisions of these names may not exceed `most`."""

    names: tuple[str, ...]
    most: int

    def holds(self, decisions: Mapping[str, int]) -> bool:
        """Whether decisions keep to it."""
        return prod(decisions[name] for name in self.names) <= self.most


_MOST_COUNTED = 100_000  # so many combinations of limited decisions are tried to count the valid
_DRAWS = 200  # a sample that is invalid so often gives way to the decisions chosen by rule


@dataclass(frozen=True, slots=True)
class Sketch:
    """A trace with open decisions, and which combinations of them make sense.

    The decisions chosen by rule keep to the limits.
    """

    name: str
    trace: Trace
    choices: tuple[Choice, ...]
    limits: tuple[Limit, ...] = ()

    @property
    def size(self) -> int:
        """How many schedules the sketch stands for; an upper bound where counting takes long."""
        limited = {name for limit in self.limits for name in limit.names}
        bound = [choice for choice in self.choices if choice.name in limited]
        free = prod(len(choice.values) for choice in self.choices if choice.name not in limited)
        combinations = prod(len(choice.values) for choice in bound)
        if not limited or combinations > _MOST_COUNTED:
            return free * combinations
        names = [choice.name for choice in bound]
        drawn = itertools.product(*(choice.values for choice in bound))
        return free * sum(self.is_valid(dict(zip(names, each, strict=True))) for each in drawn)

    def is_valid(self, decisions: Mapping[str, int]) -> bool:
        """Whether decisions keep to the limits."""
        return all(limit.holds(decisions) for limit in self.limits)

    @property
    def defaults(self) -> dict[str, int]:
        """The decisions chosen by rule."""
        return {choice.name: choice.default for choice in self.choices}

    def bound(self, decisions: Mapping[str, int]) -> Trace:
        """The trace with its decisions taken."""
        return bind(self.trace, decisions)

    def sample(self, random_source: random.Random) -> dict[str, int]:
        """Decisions drawn uniformly from those within the limits."""
        for _ in range(_DRAWS):
            drawn = {each.name: random_source.choice(each.values) for each in self.choices}
            if self.is_valid(drawn):
                return drawn
        return self.defaults


@dataclass(frozen=True, slots=True)
class Space:
    """All schedules that a search may try for one program."""

    sketches: tuple[Sketch, ...]

    @property
    def size(self) -> int:
        """How many schedules the space holds."""
        return sum(sketch.size for sketch in self.sketches)

    @property
    def default_trace(self) -> Trace:
        """The schedule chosen by rule."""
        first = self.sketches[0]
        return first.bound(first.defaults)


class SketchBuilder:
    """Grow a sketch step by step; mutable, used inside one function.

    Each step is checked and applied at once, decisions still open, so that a rule which asks for
    an illegal step fails where it asks and not in the middle of a search.
    """

    def __init__(self, state: ScheduleState) -> None:
        self.state = state
        self.steps: list[Primitive] = []
        self.choices: list[Choice] = []
        self.limits: list[Limit] = []

    def do(self, step: Primitive) -> None:
        """Append a step.  Raises ScheduleError where it is illegal."""
        step.check(self.state)
        self.state = step.apply(self.state)
        self.steps.append(step)

    def choose(self, name: str, values: tuple[int, ...], default: int) -> Decision | int:
        """A decision over the values; a plain number where there is but one."""
        kept = tuple(sorted({*values, default}))
        if len(kept) == 1:
            return kept[0]
        self.choices.append(Choice(name, kept, default))
        return Decision(name)

    def limit(self, factors: tuple[Index, ...], most: int) -> None:
        """Keep the product of decisions and plain numbers from exceeding `most`.

        The choice by rule stays possible: where it exceeds `most`, its product is the limit.
        """
        names = tuple(factor.name for factor in factors if isinstance(factor, Decision))
        if not names:
            return
        defaults = {choice.name: choice.default for choice in self.choices}
        fixed = prod(factor for factor in factors if isinstance(factor, int))
        by_rule = prod(defaults[name] for name in names)
        self.limits.append(Limit(names, max(most // fixed, by_rule)))

    def sketch(self, name: str) -> Sketch:
        """What has been built."""
        return Sketch(name, tuple(self.steps), tuple(self.choices), tuple(self.limits))


def divisors(number: int, most: int) -> tuple[int, ...]:
    """The divisors of a number up to a limit, ascending."""
    return tuple(n for n in range(1, min(number, most) + 1) if number % n == 0)
