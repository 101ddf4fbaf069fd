"""An index of all applications that have a class or an equality, to look up their classes.

index.find((code of relu, 0, 9, -1))     where relu of class 9 is, or None
index.of(entry)                          its class
index.applications(9, level)             the term of class 9 and what equals it
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorwright.base import UsageError
from tensorwright.rewriting.operators import IntShape
from tensorwright_lab.rule_generation.candidates.facts import Facts
from tensorwright_lab.rule_generation.enumerate.classes import INPUT, Applied

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
