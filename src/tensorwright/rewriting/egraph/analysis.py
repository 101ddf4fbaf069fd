"""What an e-graph knows of each class: data that are made with a node and merged with classes.

    transpose[1, 0](?x)  where ?x has the shape (3, 4)     make: the class has the shape (4, 3)
    matmul(?x, ?x)       where ?x has the shape (3, 4)     make: None, there is no such term
    ewadd(?x, ?y) = ewadd(?y, ?x) becomes one class        merge: the shape of either

Data are immutable and can be hashed: equal ones are kept once, and what an operator makes of data
is computed once.

Source:  Willsey et al., egg, POPL 2021, section 4 (e-class analyses).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Protocol, TypeAlias, TypeVar

from tensorwright.rewriting.dims import Extent, Size
from tensorwright.rewriting.terms import ConditionAtom, Param, Rule

Data = TypeVar("Data", bound=Hashable)

Value: TypeAlias = "Param | tuple[Param, ...]"
"""What a parameter variable stands for: a parameter, or several that are left."""


def listed(value: Value) -> tuple[Param, ...]:
    """The parameters that a variable stands for."""
    return value if isinstance(value, tuple) else (value,)


@dataclass(frozen=True, slots=True)
class Scope(Generic[Data]):
    """What variables stand for: parameter variables for values, inputs for classes with data."""

    values: Mapping[str, Value]
    data: Mapping[str, Data]


def axis_in(extent: Extent, scope: Scope[Data]) -> int | None:
    """The dimension that an extent speaks of where variables have values; None where it is none."""
    if not extent.variable:
        return extent.axis
    value = scope.values.get(extent.variable)
    return value if isinstance(value, int) else None


class Applies(Enum):
    """Whether a rule may be applied somewhere; who asks applies it where the answer is yes."""

    YES = "yes"
    NO = "no"  # a side has no meaning there
    UNKNOWN = "unknown"  # it has, and no proof speaks of it


class Analysis(Protocol[Data]):
    """The data of classes, and what patterns say of sizes.

    An application of `?` with the name of an input as its parameter is that input.
    """

    def make(self, operator: str, params: tuple[Param, ...], args: tuple[Data, ...]) -> Data | None:
        """The data of an application to classes with data; None where there is no such term."""
        ...

    def merge(self, kept: Data, lost: Data) -> Data:
        """The data of a class that two classes become.

        Of three the result must not depend on the order, but for data that `may_merge` holds equal.
        """
        ...

    def may_merge(self, left: Data, right: Data) -> bool:
        """Whether classes with these data may become one; asked before a rewrite is applied."""
        ...

    def size(self, size: Size, scope: Scope[Data] | None) -> Size | None:
        """A size in normal form, None where it is none; a pattern's size has a scope."""
        ...

    def holds(self, fact: ConditionAtom, scope: Scope[Data]) -> bool:
        """Whether an atom of a rewrite's condition is known to hold."""
        ...

    def admits(self, rule: Rule, scope: Scope[Data]) -> Applies:
        """Whether a rule whose condition holds may be applied to classes with such data."""
        ...
