"""Knobs: the named choices of a sketch's template, and their values in the sketch.

A knob has a value in every configuration of a template.  If the steps of the program depend on it,
each value gives a separate sketch; else the value has open decisions, and the search binds them.
The four kinds of value, and their two letters in logs, are AutoTVM's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tensorwright.expr import Decision, Index

Scalar = int | float | str
"""A bool is an int."""


class Entity(StrEnum):
    """The kind of a knob, in the letters of AutoTVM's logs."""

    SPLIT = "sp"  # sizes of tiles inside each other, outermost first; -1: as many as there are
    OTHER = "ot"  # a number, a word, or yes and no
    REORDER = "re"  # the old positions of loops, in their new order
    ANNOTATE = "an"  # a word for each of some loops: none, unroll, vectorize


REST = -1
"""The outermost size of a split: what the others leave."""

KnobValue = Scalar | tuple[Scalar, ...]
"""The value of a knob in one configuration."""


@dataclass(frozen=True, slots=True)
class Knob:
    """A knob in one sketch; its value may contain open decisions."""

    name: str
    entity: Entity
    value: Index | Scalar | tuple[Index | Scalar, ...]

    @property
    def is_open(self) -> bool:
        """Whether the search still decides it."""
        return bool(self.decisions)

    @property
    def decisions(self) -> tuple[str, ...]:
        """The names of the decisions in its value."""
        parts = self.value if isinstance(self.value, tuple) else (self.value,)
        return tuple(part.name for part in parts if isinstance(part, Decision))

    def bound(self, decisions: Mapping[str, int]) -> KnobValue:
        """Its value with the decisions taken."""
        if isinstance(self.value, tuple):
            return tuple(_bound(part, decisions) for part in self.value)
        return _bound(self.value, decisions)

    def __str__(self) -> str:
        parts = self.value if isinstance(self.value, tuple) else (self.value,)
        return f"{self.name} {' '.join(map(str, parts))}"


def _bound(part: Index | Scalar, decisions: Mapping[str, int]) -> Scalar:
    if isinstance(part, Decision):
        return decisions[part.name]
    assert isinstance(part, int | float | str), "a knob holds decisions and plain values"
    return part


class Annotation(StrEnum):
    """The annotation of a loop."""

    NONE = "none"
    UNROLL = "unroll"
    VECTORIZE = "vectorize"


class Policy(StrEnum):
    """Which sizes of a tile are tried."""

    FACTORS = "factors"  # the divisors of the extent
    POWER2 = "power2"  # powers of two, whether they divide it or not
    VERBOSE = "verbose"  # both


class Order(StrEnum):
    """Which orders of loops are tried."""

    ALL = "all"  # every permutation
    INTERLEAVE = "interleave"  # those in which each of some chains of loops keeps its own order
    CANDIDATES = "candidates"  # those that are given
