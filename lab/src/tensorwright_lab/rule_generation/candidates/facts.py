"""The facts of an enumeration about applications, as arrays that a file can hold.

    facts = facts_of(enumeration, forms)     columns of classes and of equalities
    restored(facts.arrays())                 the same, in another process

Processes that share files with the client read them: pruning looks at all applications, so they
cannot travel with each unit.

An index of all applications that have a class or an equality, to look up their classes.

index.find((code of relu, 0, 9, -1))     where relu of class 9 is, or None
index.of(entry)                          its class
index.applications(9, level)             the term of class 9 and what equals it
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import UsageError
from tensorwright.rewriting.operators import IntShape
from tensorwright_lab.rule_generation.enumerate.checkpoint import Arrays
from tensorwright_lab.rule_generation.enumerate.classes import INPUT, Applied, Ints, Places
from tensorwright_lab.rule_generation.enumerate.enumerate import Enumeration
from tensorwright_lab.rule_generation.operator_facts import facts_of_operator


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Applications: operators with their parameters, and the classes of the arguments."""

    code: Ints
    cut: Ints
    a: Ints
    b: Ints

    def at(self, row: int) -> Applied:
        """The application in a row."""
        code, cut = self.code.item(row), self.cut.item(row)
        return code, cut, self.a.item(row), self.b.item(row)


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """Classes and equalities; both are rows of columns.

    terms, kind, cost    of each class: its term, what it is, its operators
    equal, of, level     of each equality: the application, its class, where it was found
    form                 of each equality: which one it is up to renaming, see `DistinctEqualities`
    shapes               of each kind           commutes   of each code, whether operands may turn
    inputs               how many classes are inputs of the preset
    depth                levels of the enumeration
    """

    terms: Columns
    kind: Ints
    cost: NDArray[np.int8]
    equal: Columns
    of: Places
    level: NDArray[np.int8]
    form: Places
    shapes: tuple[IntShape, ...]
    commutes: tuple[bool, ...]
    inputs: int
    depth: int

    def arrays(self) -> Arrays:
        """All as arrays by name."""
        about = [self.shapes, self.commutes, self.inputs, self.depth]
        arrays: Arrays = {name: getattr(self, name) for name in _OWN}
        for name in ("terms", "equal"):
            columns = getattr(self, name)
            arrays |= {f"{name}_{each}": getattr(columns, each) for each in _COLUMNS}
        return arrays | {"about": np.frombuffer(json.dumps(about).encode(), np.uint8)}


_OWN = ("kind", "cost", "of", "level", "form")
_COLUMNS = ("code", "cut", "a", "b")


def facts_of(enumeration: Enumeration, forms: Places) -> Facts:
    """The facts of an enumeration; `forms` as `DistinctEqualities.which`."""
    terms, equal = (
        Columns(*(getattr(source, name) for name in _COLUMNS))
        for source in (enumeration.table, enumeration.equal.batch)
    )
    operators = (each.operator for each in enumeration.preset.applications)
    return Facts(
        terms,
        enumeration.table.kind,
        enumeration.table.cost,
        equal,
        enumeration.equal.of,
        enumeration.levels,
        forms,
        tuple(kind.shape for kind in enumeration.table.kinds),
        tuple(facts_of_operator(name).is_commutative for name in operators),
        len(enumeration.preset.inputs),
        len(enumeration.applications),
    )


def restored(arrays: Arrays) -> Facts:
    """The inverse of `Facts.arrays`."""
    shapes, commutes, inputs, depth = json.loads(arrays["about"].tobytes())
    terms, equal = (
        Columns(*(arrays[f"{name}_{each}"] for each in _COLUMNS)) for name in ("terms", "equal")
    )
    kind, cost, of, level, form = (arrays[name] for name in _OWN)
    about = (tuple(map(tuple, shapes)), tuple(commutes), inputs, depth)
    return Facts(terms, kind, cost, equal, of, level, form, *about)


_ALTERNATIVES = 6
"""Applications of a class besides its term that are looked at."""


_MOST_CLASSES = (1 << 24) - 1


class ApplicationIndex:
    """All applications with a class of their own or an equality, for finding them.

    Raises:  UsageError for more classes than it can number.
    """

    def __init__(self, facts: Facts) -> None:
        terms, equal = facts.terms, facts.equal
        if len(terms.code) > _MOST_CLASSES:
            raise UsageError(
                stage="rules",
                where=f"{len(terms.code):,} classes",
                reason=f"pruning can number {_MOST_CLASSES:,}",
                remedy="enumerate fewer operators, or a smaller preset",
            )
        own = np.flatnonzero(terms.code != INPUT)
        rows = np.arange(len(facts.of))
        columns = [
            np.concatenate([getattr(terms, name)[own], getattr(equal, name)]).astype(np.int64)
            for name in ("code", "cut", "a", "b")
        ]
        packed = _packed(*columns)
        order = np.argsort(packed, kind="stable")
        self._key = packed[order]
        self._of = np.concatenate([own, facts.of])[order]
        self._row = np.concatenate([np.full(len(own), -1), rows])[order]
        self._facts = facts
        small = np.flatnonzero(facts.level < facts.depth)
        by_class = small[np.argsort(facts.of[small], kind="stable")]
        self._alternatives = by_class
        self._classes = facts.of[by_class]
        self._cache: dict[int, list[tuple[int, Applied]]] = {}
        self._below: dict[tuple[int, int], tuple[Applied, ...]] = {}

    def find(self, app: Applied) -> int | None:
        """The entry of an application; None where it has none."""
        key = _packed(*app)
        entry = int(self._key.searchsorted(key))
        return entry if entry < len(self._key) and self._key.item(entry) == key else None

    def of(self, entry: int) -> int:
        """The class of an application."""
        number: int = self._of.item(entry)
        return number

    def row(self, entry: int) -> int:
        """The row of its equality, or -1 for the term of a class."""
        number: int = self._row.item(entry)
        return number

    def shape(self, number: int) -> IntShape:
        """The shape of a class that is an argument."""
        return self._facts.shapes[self._facts.kind.item(number)]

    def applications(self, number: int, level: int) -> Sequence[Applied]:
        """The term of a class, and some applications of lower levels that equal it."""
        applied = self._below.get((number, level))
        if applied is None:
            if number not in self._cache:
                self._cache[number] = self._applications(number)
            applied = tuple(app for at, app in self._cache[number] if at < level)
            self._below[number, level] = applied
        return applied

    def heads(self, number: int, level: int) -> tuple[int, ...]:
        """The operators of the terms that equal an argument, and -1 for any tensor."""
        if number < 0:
            return (-1,)
        return (-1, *dict.fromkeys(app[0] for app in self.applications(number, level)))

    def _applications(self, number: int) -> list[tuple[int, Applied]]:
        facts = self._facts
        own = facts.terms.at(number)
        listed = [] if own[0] == INPUT else [(0, own)]
        first, last = self._classes.searchsorted([number, number + 1]).tolist()
        rows = self._alternatives[first : min(last, first + _ALTERNATIVES)].tolist()
        return listed + [(facts.level.item(row), facts.equal.at(row)) for row in rows]


def _packed(code: Any, cut: Any, a: Any, b: Any) -> Any:
    """An application as one number; columns of them as a column."""
    return (code << 56) | (cut << 48) | ((a + 1) << 24) | (b + 1)
