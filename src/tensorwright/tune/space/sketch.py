"""Sketches: traces whose numbers are open decisions, and the choices for each.

A space is a tuple of sketches for one program.  Every sketch has a default for each of its
decisions, chosen by rule: the first sketch with its defaults is the schedule of an untuned program.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from tensorwright.expr import Decision
from tensorwright.schedule import Primitive, ScheduleState, Trace, bind


@dataclass(frozen=True, slots=True)
class Choice:
    """A decision: its name, the values that it may take, ascending, and the one chosen by rule."""

    name: str
    values: tuple[int, ...]
    default: int


@dataclass(frozen=True, slots=True)
class Sketch:
    """A trace with open decisions.  `state` is what it applies to."""

    name: str
    trace: Trace
    choices: tuple[Choice, ...]

    @property
    def size(self) -> int:
        """How many schedules the sketch stands for."""
        return prod(len(choice.values) for choice in self.choices)

    @property
    def defaults(self) -> dict[str, int]:
        """The decisions chosen by rule."""
        return {choice.name: choice.default for choice in self.choices}

    def bound(self, decisions: Mapping[str, int]) -> Trace:
        """The trace with its decisions taken."""
        return bind(self.trace, decisions)

    def sample(self, random_source: random.Random) -> dict[str, int]:
        """Decisions drawn uniformly and independently."""
        return {choice.name: random_source.choice(choice.values) for choice in self.choices}


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

    def sketch(self, name: str) -> Sketch:
        """What has been built."""
        return Sketch(name, tuple(self.steps), tuple(self.choices))


def divisors(number: int, most: int) -> tuple[int, ...]:
    """The divisors of a number up to a limit, ascending."""
    return tuple(n for n in range(1, min(number, most) + 1) if number % n == 0)
