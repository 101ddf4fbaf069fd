"""Uses of rules on one application, and the equality that each of them leads to.

    rule      relu(relu(x)) == relu(x), an equality of level 2
    on        relu(relu(ewadd(x1, x2))), which is of class 17
    leads to  relu(ewadd(x1, x2)), the term of class 17: nothing is left to say

A rule matches through classes: wherever a class stands, any of its applications may be meant, since
smaller equalities say so.  Nothing is claimed that does not hold: both applications have the
fingerprint of the class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from tensorwright.rewriting.operators import IntShape
from tensorwright_lab.rule_generation.candidates.facts import ApplicationIndex, Facts
from tensorwright_lab.rule_generation.enumerate.classes import INPUT, Applied

MOST_USES = 48
"""Uses of rules that are tried on one equality."""
TRIVIAL, UNKNOWN = -1, -2
"""The result of a use: a trivial equality, or none."""


@dataclass(frozen=True, slots=True)
class _Variable:
    """An input of a rule: any class of its rank; where `shape` is None, this very class."""

    number: int
    shape: IntShape | None


@dataclass(frozen=True, slots=True)
class _Node:
    """An operator of a rule."""

    code: int
    cut: int
    args: tuple[_Pattern, ...]


_Pattern: TypeAlias = _Variable | _Node
_Heads: TypeAlias = tuple[int, int, int]
"""The operator of a pattern and those of its arguments, -1 for a variable or none."""
_Binding: TypeAlias = dict[int, int]
"""Classes of variables by number, and where splits cut, by -1 - cut.  One is changed while all
matches are gone through: it holds until the next one."""


class OneStep:
    """Rules, and their uses on applications.

    rows         of the equalities that are rules, in order
    same_shape   inputs of rules stand only for classes of the same shape, not of the same rank
    """

    def __init__(self, facts: Facts, index: ApplicationIndex, *, same_shape: bool) -> None:
        self.facts = facts
        self.same_shape = same_shape
        self._index = index
        self.rows: list[int] = []
        self._rules: dict[_Heads, list[tuple[_Node, _Pattern]]] = {}

    def add_rule(self, row: int) -> None:
        """The rule of an equality, in both directions where all variables are bound."""
        self.rows.append(row)
        app = self._pattern_of(self.facts.equal.at(row))
        term = self._pattern(self.facts.of.item(row))
        for left, right in ((app, term), (term, app)):
            if isinstance(left, _Node) and _variables(right) <= _variables(left):
                self._rules.setdefault(_heads(left), []).append((left, right))

    def _pattern(self, number: int) -> _Pattern:
        app = self.facts.terms.at(number)
        if app[0] == INPUT:
            is_input = number < self.facts.inputs
            return _Variable(number, self._index.shape(number) if is_input else None)
        return self._pattern_of(app)

    def _pattern_of(self, app: Applied) -> _Node:
        args = tuple(self._pattern(each) for each in app[2:] if each >= 0)
        return _Node(app[0], app[1], args)

    def uses(self, app: Applied, of: int, level: int) -> Iterator[int]:
        """Where uses of rules lead: forms of equalities, TRIVIAL or UNKNOWN; some of them twice."""
        tried = 0
        for left, right in self._rules_for(app, level):
            for binding in self._matches(left, app, {}, level):
                tried += 1
                yield self._reached(right, binding, of, level)
                if tried >= MOST_USES:
                    return

    def _rules_for(self, app: Applied, level: int) -> Iterator[tuple[_Node, _Pattern]]:
        """The rules whose operators at the root and below it stand there."""
        heads = [self._index.heads(each, level) for each in app[2:]]
        wanted = list(product(*heads))
        if self.facts.commutes[app[0]]:
            wanted += [(b, a) for a, b in wanted if a != b]
        for a, b in wanted:
            yield from self._rules.get((app[0], a, b), ())

    def _reached(self, right: _Pattern, binding: _Binding, of: int, level: int) -> int:
        """The form of the equality that a use of a rule leads to."""
        if isinstance(right, _Variable):
            return TRIVIAL if binding[right.number] == of else UNKNOWN
        app = self._instance(right, binding)
        entry = None if app is None else self._index.find(app)
        if entry is None or self._index.of(entry) != of:
            return UNKNOWN
        row = self._index.row(entry)
        if row < 0 or self.facts.level.item(row) < level:
            return TRIVIAL
        form: int = self.facts.form.item(row)
        return form

    def _instance(self, node: _Node, binding: _Binding) -> Applied | None:
        """The application that a pattern stands for; None where a part has no class."""
        args = [-1, -1]
        for at, each in enumerate(node.args):
            number = self._class_of(each, binding)
            if number is None:
                return None
            args[at] = number
        cut = binding.get(-1 - node.cut) if node.cut else 0
        if cut is None:
            return None
        a, b = args
        return (node.code, cut, b, a) if self._turns(node, a, b) else (node.code, cut, a, b)

    def _turns(self, node: _Node, a: int, b: int) -> bool:
        return a > b and self.facts.commutes[node.code]

    def _class_of(self, pattern: _Pattern, binding: _Binding) -> int | None:
        if isinstance(pattern, _Variable):
            return binding[pattern.number]
        app = self._instance(pattern, binding)
        entry = None if app is None else self._index.find(app)
        return None if entry is None else self._index.of(entry)

    def _matches(
        self, node: _Node, app: Applied, binding: _Binding, level: int
    ) -> Iterator[_Binding]:
        """The ways to read an application as an instance of a pattern."""
        if node.code != app[0]:
            return
        slot = -1 - node.cut
        is_new = bool(node.cut) and slot not in binding
        if is_new:
            binding[slot] = app[1]
        if not node.cut or binding[slot] == app[1]:
            args = app[2 : 2 + len(node.args)]
            yield from self._all(node.args, args, binding, level)
            if self.facts.commutes[node.code] and args[0] != args[1]:
                yield from self._all(node.args, args[::-1], binding, level)
        if is_new:
            del binding[slot]

    def _all(
        self, patterns: tuple[_Pattern, ...], args: tuple[int, ...], binding: _Binding, level: int
    ) -> Iterator[_Binding]:
        if len(patterns) == 1:
            yield from self._ways(patterns[0], args[0], binding, level)
            return
        if not patterns:
            yield binding
            return
        for _ in self._ways(patterns[0], args[0], binding, level):
            yield from self._all(patterns[1:], args[1:], binding, level)

    def _ways(
        self, pattern: _Pattern, number: int, binding: _Binding, level: int
    ) -> Iterator[_Binding]:
        if isinstance(pattern, _Node):
            for app in self._index.applications(number, level):
                if app[0] == pattern.code:
                    yield from self._matches(pattern, app, binding, level)
            return
        bound = binding.get(pattern.number)
        if bound is not None:
            if bound == number:
                yield binding
        elif self._fits(pattern, number):
            binding[pattern.number] = number
            yield binding
            del binding[pattern.number]

    def _fits(self, variable: _Variable, number: int) -> bool:
        if variable.shape is None:
            return variable.number == number
        shape = self._index.shape(number)
        return shape == variable.shape if self.same_shape else len(shape) == len(variable.shape)


def uses_of_rows(
    rules: OneStep, rows: Sequence[int], level: int
) -> Iterator[tuple[list[int], list[int]]]:
    """Where uses on each equality lead, and those on the term of its class if that is as large.

    All are listed that may matter: the first, and those after it that say something new.
    """
    facts = rules.facts
    for row in rows:
        of = facts.of.item(row)
        own: list[int] = []
        for reached in rules.uses(facts.equal.at(row), of, level):
            if not own or (reached != UNKNOWN and reached not in own):
                own.append(reached)
            if reached == TRIVIAL:
                break
        term: list[int] = []
        if facts.cost.item(of) == level:
            term = list(dict.fromkeys(rules.uses(facts.terms.at(of), of, level)))
        yield own, term


def _heads(node: _Node) -> _Heads:
    """Where a rule is kept."""
    heads = [each.code if isinstance(each, _Node) else -1 for each in node.args]
    first, second = (*heads, -1, -1)[:2]
    return node.code, first, second


def _variables(pattern: _Pattern) -> frozenset[int]:
    """The variables that must be bound before an instance can be made."""
    if isinstance(pattern, _Variable):
        return frozenset({pattern.number})
    own = frozenset({-1 - pattern.cut} if pattern.cut else ())
    return own.union(*map(_variables, pattern.args))
