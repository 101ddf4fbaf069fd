"""All applications with a class of their own or an equality, for finding their classes.

index.find((code of relu, 0, 9, -1))     where relu of class 9 is, or None
index.of(place)                          its class
index.applications(9, level)             the term of class 9 and what equals it
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorwright.base import UsageError
from tensorwright.rewriting.operators import IntShape
from tensorwright_lab.rule_generation.enumerate.classes import INPUT, Applied, applied_at
from tensorwright_lab.rule_generation.enumerate.enumerate import Enumeration

_ALTERNATIVES = 6
"""Applications of a class besides its term that are looked at."""


_MOST_CLASSES = (1 << 24) - 1


class ApplicationIndex:
    """All applications with a class of their own or an equality, for finding them.

    Raises:  UsageError for more classes than it can number.
    """

    def __init__(self, found: Enumeration) -> None:
        table, batch = found.table, found.equal.batch
        if len(table) > _MOST_CLASSES:
            raise UsageError(
                stage="rules",
                where=f"{len(table):,} classes",
                reason=f"pruning can number {_MOST_CLASSES:,}",
                remedy="enumerate fewer operators, or a smaller preset",
            )
        own = np.flatnonzero(table.code != INPUT)
        rows = np.arange(len(batch))
        columns = [
            np.concatenate([getattr(table, name)[own], getattr(batch, name)]).astype(np.int64)
            for name in ("code", "place", "a", "b")
        ]
        packed = _packed(*columns)
        order = np.argsort(packed, kind="stable")
        self._key = packed[order]
        self._of = np.concatenate([own, found.equal.of])[order]
        self._row = np.concatenate([np.full(len(own), -1), rows])[order]
        self._found = found
        self._shapes = [kind.shape for kind in table.kinds]
        small = np.flatnonzero(found.levels < len(found.applications))
        by_class = small[np.argsort(found.equal.of[small], kind="stable")]
        self._alternatives = by_class
        self._classes = found.equal.of[by_class]
        self._cache: dict[int, list[tuple[int, Applied]]] = {}

    def find(self, app: Applied) -> int | None:
        """Where an application is."""
        key = _packed(*app)
        place = int(np.searchsorted(self._key, key))
        return place if place < len(self._key) and int(self._key[place]) == key else None

    def of(self, place: int) -> int:
        """The class of an application."""
        return int(self._of[place])

    def row(self, place: int) -> int:
        """The row of its equality, or -1 for the term of a class."""
        return int(self._row[place])

    def shape(self, number: int) -> IntShape:
        """The shape of a class that is an argument."""
        return self._shapes[int(self._found.table.kind[number])]

    def own(self, number: int) -> Applied:
        """The application that is the term of a class."""
        return applied_at(self._found.table, number)

    def equality(self, row: int) -> Applied:
        """The application of an equality."""
        return applied_at(self._found.equal.batch, row)

    def applications(self, number: int, level: int) -> Iterator[Applied]:
        """The term of a class, and some applications of lower levels that equal it."""
        if number not in self._cache:
            self._cache[number] = list(self._applications(number))
        return (app for at, app in self._cache[number] if at < level)

    def heads(self, number: int, level: int) -> tuple[int, ...]:
        """The operators that an argument may stand for, and -1 for any tensor."""
        if number < 0:
            return (-1,)
        return (-1, *dict.fromkeys(app[0] for app in self.applications(number, level)))

    def _applications(self, number: int) -> Iterator[tuple[int, Applied]]:
        if int(self._found.table.code[number]) != INPUT:
            yield 0, self.own(number)
        first, last = np.searchsorted(self._classes, [number, number + 1])
        for row in self._alternatives[first : min(last, first + _ALTERNATIVES)].tolist():
            yield int(self._found.levels[row]), self.equality(row)


def _packed(code: Any, place: Any, a: Any, b: Any) -> Any:
    """An application as one number; columns of them as a column."""
    return (code << 56) | (place << 48) | ((a + 1) << 24) | (b + 1)
