"""The named sizes of a plan, and plans with numbers instead of them.

The plan of an open network has formulas for extents, bytes, and the work of a step.  Its arena is
laid out for a capacity, a number for each size, and serves all calls that are not larger.  The
capacity of a size is its greatest number; without a greatest number it grows (`capacity.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, TypeVar

from tensorwright.base import Amount, Formula, SizeBounds, amount_at

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PlanSize:
    """A named size: a multiple of its divisor between two bounds.

    most       None if it has no greatest number
    capacity   the value for which the arena is laid out
    bound      of a size that steps decide: its greatest value in a call, by the sizes of the
               inputs; `most` if None
    """

    name: str
    least: int
    most: int | None
    divisor: int
    capacity: int
    bound: Amount | None = None

    def room(self, values: Mapping[str, int]) -> int:
        """The greatest value in a call, if a step decides it; `values` are the other sizes."""
        return self.capacity if self.bound is None else amount_at(self.bound, values)

    def admits(self, value: int) -> bool:
        """Whether the size may have this value."""
        is_between = self.least <= value and (self.most is None or value <= self.most)
        return is_between and value % self.divisor == 0

    @property
    def bounds(self) -> SizeBounds:
        """The bounds alone."""
        return SizeBounds(self.least, self.most, self.divisor)

    @property
    def demand(self) -> str:
        """What its values keep to, in words: "at least 8 and at most 64, a multiple of 4"."""
        most = "" if self.most is None else f" and at most {self.most}"
        steps = f", a multiple of {self.divisor}" if self.divisor > 1 else ""
        return f"at least {self.least}{most}{steps}"

    def __str__(self) -> str:
        return f"{self.name} in {self.bounds}"


def numbered(value: T, values: Mapping[str, int]) -> T:
    """A piece of a plan with numbers for its formulas; formulas of other sizes stay."""
    changed: object = _numbered(value, values)
    return changed  # type: ignore[return-value]  # the same class, with other fields


def _numbered(value: object, values: Mapping[str, int]) -> object:
    if isinstance(value, Formula):
        return value.with_values(values)
    if isinstance(value, tuple):
        parts = tuple([_numbered(part, values) for part in value])
        return parts if any(a is not b for a, b in zip(parts, value, strict=True)) else value
    if not is_dataclass(value) or isinstance(value, type | Enum):
        return value
    names = _fields_of(type(value))
    old = [getattr(value, name) for name in names]
    new = [_numbered(part, values) for part in old]
    if all(a is b for a, b in zip(new, old, strict=True)):
        return value
    return type(value)(**dict(zip(names, new, strict=True)))


@lru_cache(maxsize=256)
def _fields_of(kind: Any) -> tuple[str, ...]:
    """The names of the fields that a class is made of."""
    return tuple(field.name for field in fields(kind) if field.init)
