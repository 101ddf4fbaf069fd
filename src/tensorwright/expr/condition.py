"""Conditions on index expressions: comparisons, and what joins them.

Grammar
    c ::= bool | Compare(<, <=, ==, !=; e, e) | And(c, ...) | Or(c, ...) | Not(c)

The other two comparisons are these with swapped sides. What is certain without any bounds is
decided when it is built, so a condition that holds always is True itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:  # its operators build comparisons, so it imports this module
    from tensorwright.expr.index import Index

__all__ = [
    "And",
    "Compare",
    "Condition",
    "Not",
    "Or",
    "Relation",
    "all_of",
    "any_of",
    "compare",
    "negate",
]


class Relation(Enum):
    """The comparisons of the index sort; the other two are these with swapped sides."""

    LT = "<"
    LE = "<="
    EQ = "=="
    NE = "!="


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison of two index expressions."""

    relation: Relation
    left: Index
    right: Index

    def __str__(self) -> str:
        return f"{self.left} {self.relation.value} {self.right}"


@dataclass(frozen=True, slots=True)
class And:
    """All of the parts; build with `all_of`."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " and ".join(f"({p})" if isinstance(p, Or) else str(p) for p in self.parts)


@dataclass(frozen=True, slots=True)
class Or:
    """Any of the parts; build with `any_of`."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " or ".join(f"({p})" if isinstance(p, And) else str(p) for p in self.parts)


@dataclass(frozen=True, slots=True)
class Not:
    """The negation; build with `negate`."""

    part: Condition

    def __str__(self) -> str:
        return f"not ({self.part})"


Condition: TypeAlias = bool | Compare | And | Or | Not


def compare(relation: Relation, left: Index, right: Index) -> Condition:
    """Compare two index expressions; decided at once when the difference is a constant."""
    difference = left - right
    if not isinstance(difference, int):
        return Compare(relation, left, right)
    match relation:
        case Relation.LT:
            return difference < 0
        case Relation.LE:
            return difference <= 0
        case Relation.EQ:
            return difference == 0
        case Relation.NE:
            return difference != 0


def all_of(*parts: Condition) -> Condition:
    """Conjunction, flattened, without duplicates; empty is true."""
    kept: dict[Condition, None] = {}
    for part in parts:
        if part is False:
            return False
        for leaf in part.parts if isinstance(part, And) else (part,):
            if leaf is not True:
                kept[leaf] = None
    if len(kept) <= 1:
        return next(iter(kept), True)
    return And(tuple(kept))


def any_of(*parts: Condition) -> Condition:
    """Disjunction, flattened, without duplicates; empty is false."""
    kept: dict[Condition, None] = {}
    for part in parts:
        if part is True:
            return True
        for leaf in part.parts if isinstance(part, Or) else (part,):
            if leaf is not False:
                kept[leaf] = None
    if len(kept) <= 1:
        return next(iter(kept), False)
    return Or(tuple(kept))


def negate(condition: Condition) -> Condition:
    """Negation, pushed into comparisons."""
    match condition:
        case bool():
            return not condition
        case Compare(Relation.LT, left, right):
            return compare(Relation.LE, right, left)
        case Compare(Relation.LE, left, right):
            return compare(Relation.LT, right, left)
        case Compare(Relation.EQ, left, right):
            return Compare(Relation.NE, left, right)
        case Compare(_, left, right):
            return Compare(Relation.EQ, left, right)
        case Not(part):
            return part
        case And(parts):
            return any_of(*(negate(part) for part in parts))
        case Or(parts):
            return all_of(*(negate(part) for part in parts))
