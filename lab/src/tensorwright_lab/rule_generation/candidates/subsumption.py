"""Equalities that one use of another rule says: a cheap test before anything is proved.

    rule        relu(relu(x)) == relu(x)
    equality    relu(relu(ewadd(x, y))) == relu(ewadd(x, y))     one use of it: left out
    equality    transpose(transpose(x)) == x                     stays

An equality says that an application equals a class.  If a rule with fewer operators turns the
application into another one, which the same class is known to have, then the equality follows from
that rule and the other equality; and it is trivial where the other one is the term of the class or
an equality of an earlier level.  So equalities are nodes of a graph whose edges are uses of smaller
rules, and of each component one equality is enough, or none.

What then is left may still be a case of an equality of its own level with fewer inputs named twice,
at the same shapes; the more general ones come first, and a case of those that are kept is left out.

A rule matches through classes: wherever a class stands, any of its applications may be meant, since
smaller equalities say so.  Nothing is claimed that does not hold: both applications have the
fingerprint of the class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import numpy as np

from tensorwright.rewriting.operators import IntShape, operator_named
from tensorwright_lab.rule_generation.candidates.application_index import ApplicationIndex
from tensorwright_lab.rule_generation.candidates.congruence import DistinctEqualities, Remaining
from tensorwright_lab.rule_generation.enumerate.classes import INPUT, Applied, Places
from tensorwright_lab.rule_generation.enumerate.enumerate import Enumeration
from tensorwright_lab.rule_generation.enumerate.grouping import describe

_MATCHES = 48
"""Uses of rules that are tried on one equality."""


@dataclass(frozen=True, slots=True)
class _Variable:
    """An input of a rule: any class of its rank; where `shape` is None, this very class."""

    number: int
    shape: IntShape | None


@dataclass(frozen=True, slots=True)
class _Node:
    """An operator of a rule."""

    code: int
    place: int
    args: tuple[_Pattern, ...]


_Pattern: TypeAlias = _Variable | _Node
_Heads: TypeAlias = tuple[int, int, int]
"""The operator of a pattern and those of its arguments, -1 for a variable or none."""
_Rules: TypeAlias = "dict[_Heads, list[tuple[_Node, _Pattern]]]"
_Binding: TypeAlias = dict[tuple[str, int], int]
"""Classes of variables `("x", n)`, and places of splits `("at", n)`."""


def without_subsumed(found: Enumeration, each: DistinctEqualities, remaining: Remaining) -> Places:
    """The rows of `remaining` that no other rule subsumes, one of each component."""
    rows = remaining.row
    search = _Subsumption(found, each.which, rows, remaining.same)
    level = found.levels[rows]
    kept: list[int] = []
    for at in np.unique(level).tolist():
        own = rows[level == at]
        for row in own.tolist():
            search.subsume(row, at)
        kept += search.remaining(_general_first(found, own), at)
        for row in own.tolist():
            search.add_rule(row)
    return np.array(kept, np.intp)


def _general_first(found: Enumeration, rows: Places) -> list[int]:
    """Rows with many different inputs first."""
    sequence = describe(found.table, found.equal.batch.take(rows)).sequence
    inputs = (sequence >= 0).sum(axis=1)
    ordered: list[int] = rows[np.lexsort((rows, -inputs))].tolist()
    return ordered


class _Subsumption:
    def __init__(
        self,
        found: Enumeration,
        forms: Places,
        rows: Places,
        same: Sequence[tuple[int, int]],
    ) -> None:
        self.found = found
        self.forms = forms
        self.table = found.table
        self.index = ApplicationIndex(found)
        self.commutes = [
            operator_named(each.operator).is_commutative for each in found.preset.applications
        ]
        self.rules: _Rules = {}
        self.same_shape = False
        count = int(forms.max(initial=-1)) + 1
        self.parent = list(range(count + 1))
        self.trivial = count
        self.settled = {count}
        implied = np.ones(count, np.bool_)
        implied[forms[rows]] = False
        for form in np.flatnonzero(implied):
            self.parent[int(form)] = self.trivial
        for kept, other in same:
            self.parent[other] = kept

    def add_rule(self, row: int) -> None:
        """The rule of an equality, in both directions where all variables are bound."""
        app = self._pattern_of(self.index.equality(row))
        term = self._pattern(int(self.found.equal.of[row]))
        for left, right in ((app, term), (term, app)):
            if isinstance(left, _Node) and _variables(right) <= _variables(left):
                self.rules.setdefault(_heads(left), []).append((left, right))

    def _pattern(self, number: int) -> _Pattern:
        if int(self.table.code[number]) == INPUT:
            is_input = number < len(self.found.preset.inputs)
            return _Variable(number, self.index.shape(number) if is_input else None)
        return self._pattern_of(self.index.own(number))

    def _pattern_of(self, app: Applied) -> _Node:
        args = tuple(self._pattern(each) for each in app[2:] if each >= 0)
        return _Node(app[0], app[1], args)

    def subsume(self, row: int, level: int) -> None:
        """Try the rules on an equality, and on the term of its class if that is as large."""
        of = int(self.found.equal.of[row])
        self._try(self.index.equality(row), of, int(self.forms[row]), level)
        if int(self.table.cost[of]) == level:
            self._try(self.index.own(of), of, self.trivial, level)

    def _try(self, app: Applied, of: int, form: int, level: int) -> None:
        tried = 0
        for left, right in self._rules_for(app, level):
            for binding in self._matches(left, app, {}, level):
                tried += 1
                self._join(form, self._reached(right, binding, of, level))
                if tried >= _MATCHES or self._root(form) == self._root(self.trivial) != form:
                    return

    def _rules_for(self, app: Applied, level: int) -> Iterator[tuple[_Node, _Pattern]]:
        """The rules whose operators at the root and below it stand there."""
        heads = [self.index.heads(each, level) for each in app[2:]]
        wanted = list(product(*heads))
        if self.commutes[app[0]]:
            wanted += [(b, a) for a, b in wanted if a != b]
        for a, b in wanted:
            yield from self.rules.get((app[0], a, b), ())

    def _join(self, form: int, reached: int | None) -> None:
        if reached is None:
            return
        root, other = self._root(form), self._root(reached)
        if not self.same_shape:
            if root == self._root(self.trivial):
                root, other = other, root
            self.parent[root] = other
        elif other in self.settled and root not in self.settled:
            self.parent[root] = other

    def _root(self, form: int) -> int:
        while self.parent[form] != form:
            self.parent[form] = self.parent[self.parent[form]]
            form = self.parent[form]
        return form

    def _reached(self, right: _Pattern, binding: _Binding, of: int, level: int) -> int | None:
        """The form of the equality that a use of a rule leads to; None if it is not known."""
        if isinstance(right, _Variable):
            return self.trivial if binding["x", right.number] == of else None
        app = self._instance(right, binding)
        place = None if app is None else self.index.find(app)
        if place is None or self.index.of(place) != of:
            return None
        row = self.index.row(place)
        if row < 0 or int(self.found.levels[row]) < level:
            return self.trivial
        return int(self.forms[row])

    def _instance(self, node: _Node, binding: _Binding) -> Applied | None:
        """The application that a pattern stands for; None where a part has no class."""
        args = [-1, -1]
        for at, each in enumerate(node.args):
            number = self._class_of(each, binding)
            if number is None:
                return None
            args[at] = number
        place = binding.get(("at", node.place)) if node.place else 0
        if place is None:
            return None
        return (node.code, place, *self._ordered(node.code, args[0], args[1]))

    def _ordered(self, code: int, a: int, b: int) -> tuple[int, int]:
        return (b, a) if self.commutes[code] and a > b else (a, b)

    def _class_of(self, pattern: _Pattern, binding: _Binding) -> int | None:
        if isinstance(pattern, _Variable):
            return binding["x", pattern.number]
        app = self._instance(pattern, binding)
        place = None if app is None else self.index.find(app)
        return None if place is None else self.index.of(place)

    def _matches(
        self, node: _Node, app: Applied, binding: _Binding, level: int
    ) -> Iterator[_Binding]:
        """The ways to read an application as an instance of a pattern."""
        if node.code != app[0]:
            return
        if node.place:
            known = binding.get(("at", node.place))
            if known is not None and known != app[1]:
                return
            binding = binding | {("at", node.place): app[1]}
        args = app[2 : 2 + len(node.args)]
        yield from self._all(node.args, args, binding, level)
        if self.commutes[node.code] and args[0] != args[1]:
            yield from self._all(node.args, args[::-1], binding, level)

    def _all(
        self, patterns: tuple[_Pattern, ...], args: tuple[int, ...], binding: _Binding, level: int
    ) -> Iterator[_Binding]:
        if not patterns:
            yield binding
            return
        for each in self._ways(patterns[0], args[0], binding, level):
            yield from self._all(patterns[1:], args[1:], each, level)

    def _ways(
        self, pattern: _Pattern, number: int, binding: _Binding, level: int
    ) -> Iterator[_Binding]:
        if isinstance(pattern, _Node):
            for app in self.index.applications(number, level):
                yield from self._matches(pattern, app, binding, level)
            return
        known = binding.get(("x", pattern.number))
        if known is not None:
            if known == number:
                yield binding
        elif self._fits(pattern, number):
            yield binding | {("x", pattern.number): number}

    def _fits(self, variable: _Variable, number: int) -> bool:
        if variable.shape is None:
            return variable.number == number
        shape = self.index.shape(number)
        return shape == variable.shape if self.same_shape else len(shape) == len(variable.shape)

    def remaining(self, rows: Sequence[int], level: int) -> list[int]:
        """Of each component of a level one row, unless it is a case of a row that is kept."""
        smaller, self.rules, self.same_shape = self.rules, {}, True
        kept: list[int] = []
        for row in rows:
            root = self._root(int(self.forms[row]))
            if root in self.settled or root == self._root(self.trivial):
                continue
            self.subsume(row, level)
            if self._root(root) == root:
                self.settled.add(root)
                kept.append(row)
                self.add_rule(row)
        self.rules, self.same_shape = smaller, False
        return kept


def _heads(node: _Node) -> _Heads:
    """Where a rule is kept."""
    heads = [each.code if isinstance(each, _Node) else -1 for each in node.args]
    first, second = (*heads, -1, -1)[:2]
    return node.code, first, second


def _variables(pattern: _Pattern) -> frozenset[tuple[str, int]]:
    """What must be bound before an instance can be made."""
    if isinstance(pattern, _Variable):
        return frozenset({("x", pattern.number)})
    own = frozenset({("at", pattern.place)} if pattern.place else ())
    return own.union(*map(_variables, pattern.args))
