"""Equalities that follow by one use of another rule: a cheap test before anything is proved.

    rule        relu(relu(x)) == relu(x)
    equality    relu(relu(ewadd(x, y))) == relu(ewadd(x, y))     one use of it: left out
    equality    transpose(transpose(x)) == x                     stays

An equality says that an application equals a class.  If a rule with fewer operators turns the
application into another one, which the same class is known to have, then the equality follows from
that rule and the other equality; and it is trivial where the other one is the term of the class or
an equality of an earlier level.  So equalities are nodes of a graph whose edges are uses of smaller
rules (`one_step.py`), and of each component one equality is enough, or none.

What then is left may still be a case of an equality of its own level with fewer inputs named twice,
at the same shapes; the more general ones come first, and a case of those that are kept is left out.

Uses of rules as units: a part of the equalities of a level each, on processes that share files.

unit        {"folder": ..., "level": 4, "low": 512, "high": 1024}: rows by position
answer      where uses lead, equality by equality, as two columns
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.farm import Payload
from tensorwright_lab.rule_generation.candidates.congruence import DistinctEqualities, Remaining
from tensorwright_lab.rule_generation.candidates.facts import (
    ApplicationIndex,
    Facts,
    facts_of,
    restored,
)
from tensorwright_lab.rule_generation.candidates.one_step import (
    TRIVIAL,
    UNKNOWN,
    OneStep,
    uses_of_rows,
)
from tensorwright_lab.rule_generation.enumerate.checkpoint import LevelUnits, load_arrays
from tensorwright_lab.rule_generation.enumerate.classes import Places, distinct
from tensorwright_lab.rule_generation.enumerate.enumerate import Enumeration
from tensorwright_lab.rule_generation.enumerate.grouping import describe

_ROWS = 1024
_EFFORT = 500.0
"""Microseconds of an equality, about."""
_FEW = 2048
_FILE = "facts"
Uses = tuple[list[int], list[int]]


def uses_of_level(rules: OneStep, rows: Places, level: int, units: LevelUnits) -> Iterator[Uses]:
    """As `uses_of_rows`, on the processes that share files with this one."""
    if len(rows) < _FEW or not units.farm.shares_files:
        yield from uses_of_rows(rules, rows.tolist(), level)
        return
    folder = units.folder
    name = f"{_FILE}-{level}"
    if not folder.has(name):
        about = {"rows": rows, "rules": np.array(rules.rows, np.intp)}
        folder.save(name, {**rules.facts.arrays(), **about})
    step = "uses"
    shared = {"folder": str(folder.path.absolute()), "level": level}
    names = units.complete(
        step,
        lambda at: Payload({**shared, "low": at * _ROWS, "high": (at + 1) * _ROWS}),
        [_EFFORT * _ROWS] * -(-len(rows) // _ROWS),
        f"{step}-{level}",
    )
    for each in names:
        yield from _unpacked(folder.unit(each))


def listed_uses(payload: Payload) -> Payload:
    """Where uses of rules on some equalities lead: how many there are of each, and all of them."""
    level, own = payload.data["level"], slice(payload.data["low"], payload.data["high"])
    rules, rows = _rules_and_rows(payload.data["folder"], level)
    parts = [part for uses in uses_of_rows(rules, rows[own], level) for part in uses]
    counts = np.array([len(part) for part in parts], np.int32)
    reached = np.array([each for part in parts for each in part], np.int32)
    return Payload(blobs=(counts.tobytes(), reached.tobytes()))


def _unpacked(answer: Payload) -> Iterator[Uses]:
    columns: Sequence[NDArray[Any]] = [np.frombuffer(blob, np.int32) for blob in answer.blobs]
    counts, reached = columns
    ends = [0, *np.cumsum(counts).tolist()]
    parts = [reached[low:high].tolist() for low, high in pairwise(ends)]
    return zip(parts[::2], parts[1::2], strict=True)


@lru_cache(maxsize=1)
def _rules_and_rows(folder: str, level: int) -> tuple[OneStep, list[int]]:
    """What all units of a level share; a process reads it once."""
    arrays = load_arrays(Path(folder) / f"{_FILE}-{level}.npz")
    facts = restored(arrays)
    rules = OneStep(facts, ApplicationIndex(facts), same_shape=False)
    for row in arrays["rules"].tolist():
        rules.add_rule(row)
    return rules, arrays["rows"].tolist()


def without_subsumed(
    enumeration: Enumeration, each: DistinctEqualities, remaining: Remaining, units: LevelUnits
) -> Places:
    """The rows of `remaining` that no other rule subsumes, one of each component."""
    rows = remaining.row
    facts = facts_of(enumeration, each.which)
    index = ApplicationIndex(facts)
    components = _Components(facts, rows, remaining.same)
    smaller = OneStep(facts, index, same_shape=False)
    level = enumeration.levels[rows]
    kept: list[int] = []
    own = rows[:0]
    for at in distinct(level).tolist():
        for row in own.tolist():
            smaller.add_rule(row)
        own = rows[level == at]
        for row, (reached, of_term) in zip(
            own.tolist(), uses_of_level(smaller, own, at, units), strict=True
        ):
            components.join(int(facts.form[row]), reached)
            components.join(components.trivial, of_term)
        same_level = OneStep(facts, index, same_shape=True)
        kept += components.remaining(same_level, _general_first(enumeration, own), at)
    return np.array(kept, np.intp)


def _general_first(enumeration: Enumeration, rows: Places) -> list[int]:
    """Rows with many different inputs first."""
    sequence = describe(enumeration.table, enumeration.equal.batch.take(rows)).sequence
    inputs = (sequence >= 0).sum(axis=1)
    ordered: list[int] = rows[np.lexsort((rows, -inputs))].tolist()
    return ordered


class _Components:
    """Equalities up to renaming, joined by uses of rules.

    trivial   the component of equalities that need no rule
    decided   components of which an equality is kept, or none is needed
    """

    def __init__(self, facts: Facts, rows: Places, same: Sequence[tuple[int, int]]) -> None:
        self._facts = facts
        count = int(facts.form.max(initial=-1)) + 1
        self._parent = list(range(count + 1))
        self.trivial = count
        self.decided = {count}
        implied = np.ones(count, np.bool_)
        implied[facts.form[rows]] = False
        for form in np.flatnonzero(implied).tolist():
            self._parent[form] = self.trivial
        for kept, other in same:
            self._parent[other] = kept

    def join(self, form: int, uses: Iterable[int], *, to_decided: bool = False) -> None:
        """Join a form with those to which uses lead, until it is trivial.

        to_decided   only with components that are decided, and only if its own is not
        """
        for reached in uses:
            if reached != UNKNOWN:
                self._join(form, self.trivial if reached == TRIVIAL else reached, to_decided)
            if self._root(form) == self.trivial != form:
                return

    def _join(self, form: int, reached: int, to_decided: bool) -> None:
        root, other = self._root(form), self._root(reached)
        if not to_decided:
            if root == self.trivial:
                root, other = other, root
            self._parent[root] = other
        elif other in self.decided and root not in self.decided:
            self._parent[root] = other

    def _root(self, form: int) -> int:
        parent = self._parent
        while parent[form] != form:
            parent[form] = parent[parent[form]]
            form = parent[form]
        return form

    def remaining(self, rules: OneStep, rows: Sequence[int], level: int) -> list[int]:
        """Of each component of a level one row, unless it is a case of a row that is kept.

        rules   gets the rows that are kept
        """
        facts = self._facts
        kept: list[int] = []
        for row in rows:
            root = self._root(int(facts.form[row]))
            if root in self.decided:
                continue
            of = facts.of.item(row)
            uses = rules.uses(facts.equal.at(row), of, level)
            self.join(int(facts.form[row]), uses, to_decided=True)
            if facts.cost.item(of) == level:
                uses = rules.uses(facts.terms.at(of), of, level)
                self.join(self.trivial, uses, to_decided=True)
            if self._root(root) == root:
                self.decided.add(root)
                kept.append(row)
                rules.add_rule(row)
        return kept
