"""Decide whether a rule is a special case of another one.

    relu(transpose[1, 0](?x)) == transpose[1, 0](relu(?x))       is
    relu(transpose[_p](?y)) == transpose[_p](relu(?y))           for y = ?x and _p = 1, 0

A rule for all tensors and values holds for these too, so a special case of a true rule is true.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from tensorwright.expr import IndexExpr
from tensorwright.rewriting.assumptions import NOTHING_ASSUMED
from tensorwright.rewriting.dims import Extent, Size, atoms_of, value_of
from tensorwright.rewriting.egraph import is_parameter_variable
from tensorwright.rewriting.terms import (
    AtLeast,
    ConditionAtom,
    Different,
    Divides,
    Equal,
    Input,
    Param,
    Rank,
    Reordered,
    Rule,
    Term,
)

Values: TypeAlias = Mapping[str, tuple[Param, ...]]
_Later: TypeAlias = tuple[IndexExpr | Reordered, tuple[Param, ...]]


@dataclass(frozen=True, slots=True)
class Special:
    """The values of a general rule's variables in a special case of it.

    is_reversed   whether the general one is read from right to left
    """

    terms: Mapping[str, Term]
    params: Values
    is_reversed: bool

    @property
    def is_renaming(self) -> bool:
        """Whether parameter variables stand for as many others."""
        names = [value[0] for value in self.params.values() if len(value) == 1]
        return len(set(names)) == len(self.params) and all(
            is_parameter_variable(name) for name in names
        )


def special_case(rule: Rule, general: Rule) -> Special | None:
    """The values of a general rule's variables; None where the rule is not known as a special case.

    Each atom of the general condition must be true, or stand in the condition of the rule.
    """
    sides = ((rule.left, False), (rule.right, True))
    for left, is_reversed in sides:
        right = rule.left if is_reversed else rule.right
        matching = _Matching()
        if len(left) != len(general.left):
            return None
        pairs = zip(general.roots, (*left, *right), strict=True)
        later: list[_Later] = []
        if not all(matching.term(one, other, later) for one, other in pairs):
            continue
        if all(matching.computed(one) == other for one, other in later) and all(
            matching.holds(fact, rule.condition) for fact in general.condition
        ):
            return Special(matching.terms, matching.params, is_reversed)
    return None


@dataclass(slots=True)
class _Matching:
    terms: dict[str, Term] = field(default_factory=dict)
    params: dict[str, tuple[Param, ...]] = field(default_factory=dict)

    def term(self, pattern: Term, term: Term, later: list[_Later]) -> bool:
        """Bind the variables of a pattern; what is computed from them is compared later."""
        if isinstance(pattern, Input):
            return self.terms.setdefault(pattern.name, term) == term
        if isinstance(term, Input) or pattern.operator != term.operator:
            return False
        return self._params(pattern.params, term.params, later) and all(
            self.term(one, other, later) for one, other in zip(pattern.args, term.args, strict=True)
        )

    def _params(
        self,
        wanted: tuple[Param, ...],
        actual: tuple[Param, ...],
        later: list[_Later],
    ) -> bool:
        *first, last = wanted or (0,)
        rest = actual[len(first) :]
        if isinstance(last, Reordered):
            later.append((last, rest))
        elif isinstance(last, str) and is_parameter_variable(last):
            if not rest or self.params.setdefault(last, rest) != rest:
                return False
        else:
            first, rest = list(wanted), ()
        wanted, actual = tuple(first), actual[: len(actual) - len(rest)]
        if len(wanted) != len(actual):
            return False
        for param, own in zip(wanted, actual, strict=True):
            if isinstance(param, str) and is_parameter_variable(param):
                if self.params.setdefault(param, (own,)) != (own,):
                    return False
            elif isinstance(param, IndexExpr | Reordered):
                later.append((param, (own,)))
            elif param != own:
                return False
        return True

    def computed(self, param: IndexExpr | Reordered) -> tuple[Param, ...] | None:
        """The values of parameters where all variables are bound; None where they are unknown."""
        if isinstance(param, IndexExpr):
            size = self.size(param)
            return None if size is None else (size,)
        value = param.value(self.params)
        if value is not None:
            return value
        names = tuple(self._renamed(name) for name in (param.elements, param.places))
        return (Reordered(*names),) if all(names) else None

    def _renamed(self, name: str) -> str:
        mark, own = ("~", name[1:]) if name.startswith("~") else ("", name)
        value = self.params.get(own, ())
        if len(value) == 1 and isinstance(value[0], str) and is_parameter_variable(value[0]):
            return mark + value[0]
        return ""

    def size(self, size: Size) -> Size | None:
        if isinstance(size, int):
            return size
        values: dict[Extent, Size] = {}
        for extent in atoms_of(size):
            value = self._extent(extent)
            if value is None:
                return None
            values[extent] = value
        return value_of(size, values)

    def _extent(self, extent: Extent) -> Size | None:
        if extent.name.startswith("_"):
            (value, *others) = self.params.get(extent.name, ("",))
            if isinstance(value, str) and is_parameter_variable(value) and not others:
                return Extent(value, 0)
            return value if isinstance(value, int | IndexExpr) and not others else None
        term = self.terms.get(extent.name)
        if not isinstance(term, Input):
            return None
        if not extent.variable:
            return Extent(term.name, extent.axis)
        (axis, *others) = self.params.get(extent.variable, ("",))
        if others or not isinstance(axis, int | str) or axis == "":
            return None
        return Extent(term.name, axis) if isinstance(axis, int) else Extent(term.name, -1, axis)

    def holds(self, fact: ConditionAtom, given: Iterable[ConditionAtom]) -> bool:
        """Whether an atom of the general condition is true, or is given."""
        match fact:
            case Rank(name, rank):
                term = self.terms.get(name)
                return isinstance(term, Input) and Rank(term.name, rank) in given
            case Different(left, right):
                one, other = self.params.get(left, ()), self.params.get(right, ())
                names = [str(*value) for value in (one, other) if len(value) == 1]
                if len(names) == 2 and all(map(is_parameter_variable, names)):
                    return Different(*names) in given or Different(*names[::-1]) in given
                return (
                    bool(one and other)
                    and one != other
                    and not any(
                        isinstance(each, str) and is_parameter_variable(each)
                        for each in (*one, *other)
                    )
                )
            case Equal(a, b) | AtLeast(a, b) | Divides(a, b):
                left_size, right_size = self.size(a), self.size(b)
        if left_size is None or right_size is None:
            return False
        instance = type(fact)(left_size, right_size)
        return instance in given or NOTHING_ASSUMED.entails(instance)
