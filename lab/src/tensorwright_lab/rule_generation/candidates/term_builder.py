"""Terms of classes and applications, each built once.

builder.term(9)            Apply("matmul", (), (x1, w1)), the term of class 9
builder.application(row)   the application in a row of the equalities
builder.rule(row)          application == term of its class, the larger side left
"""

from __future__ import annotations

from collections.abc import Mapping

from tensorwright.rewriting.terms import Apply, Input, Rule, Term
from tensorwright_lab.rule_generation.enumerate.classes import INPUT, applied_at
from tensorwright_lab.rule_generation.enumerate.enumerate import Enumeration
from tensorwright_lab.rule_generation.operator_facts import operator_count


class TermBuilder:
    """Reads an enumeration as terms over the inputs of its preset.

    instead   terms for some classes, in the place of their own
    """

    def __init__(self, enumeration: Enumeration, instead: Mapping[int, Term] | None = None) -> None:
        self.enumeration = enumeration
        self._terms = dict(instead or {})

    def term(self, number: int) -> Term:
        """The term of a class."""
        if number not in self._terms:
            code, cut, a, b = applied_at(self.enumeration.table, number)
            if code == INPUT:
                self._terms[number] = self.enumeration.preset.leaf(number)
            else:
                self._terms[number] = self._apply(code, cut, a, b)
        return self._terms[number]

    def _apply(self, code: int, cut: int, a: int, b: int) -> Term:
        application = self.enumeration.preset.applications[code]
        params = application.params if not cut else (*application.params, cut)
        args = [self.term(each) for each in (a, b) if each >= 0]
        return Apply(application.operator, params, (*args, *map(Input, application.operands)))

    def application(self, row: int) -> Term:
        """The application in a row of the equalities."""
        return self._apply(*applied_at(self.enumeration.equal.batch, row))

    def equality(self, row: int) -> Rule:
        """The application in a row, and the term of its class."""
        return Rule((self.application(row),), (self.term(int(self.enumeration.equal.of[row])),))

    def rule(self, row: int) -> Rule:
        """The equality of a row, the larger side on the left."""
        equality = self.equality(row)
        if operator_count(*equality.left) < operator_count(*equality.right):
            return Rule(equality.right, equality.left)
        return equality
