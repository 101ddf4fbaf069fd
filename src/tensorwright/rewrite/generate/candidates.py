"""From equal applications to candidate rules.

Equalities that differ only in the names of inputs are one, found as hashes before any term is
built.  Multi-output rules: where both halves of a split are classes with other terms, the two
together bind what each alone leaves open (`matmul(x, y), matmul(x, z)` against the two halves of
one product).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.rewrite.generate.classes import INPUT, Batch
from tensorwright.rewrite.generate.enumerate import Enumeration
from tensorwright.rewrite.generate.forms import WIDTH, form_of, merge, mix, pair_form
from tensorwright.rewrite.terms import Apply, Input, Rule, Term, operator_count

__all__ = ["Candidates", "candidates_of"]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Rules at the concrete shapes of the preset, input names as in the preset.

    initial   how many equalities there were before renaming
    """

    rules: tuple[Rule, ...]
    initial: int


def candidates_of(found: Enumeration, max_operators: int) -> Candidates:
    """The equalities, one of each up to renaming of inputs, in a fixed order."""
    single, forms = _single(found)
    double, count = _double(found, max_operators)
    order = np.argsort(forms, kind="stable")
    builder = _Builder(found)
    rules = [builder.rule(int(row)) for row in single[order]]
    rules += [builder.split_rule(*pair) for pair in double]
    return Candidates(tuple(rules), len(found.equal) + count)


def _described(found: Enumeration, batch: Batch) -> tuple[NDArray[np.uint64], NDArray[np.int8]]:
    """Forms and sequences of applications."""
    table = found.table
    sequences = np.concatenate([table.sequence, np.full((1, WIDTH), -1, np.int8)])
    forms = np.append(table.form, np.uint64(0))
    sequence, places = merge(sequences[batch.a], sequences[batch.b])
    code = batch.code.astype(np.int64) * 64 + batch.place + 1
    return form_of(code, forms[batch.a], forms[batch.b], places), sequence


def _single(found: Enumeration) -> tuple[NDArray[Any], NDArray[np.uint64]]:
    """Rows of `found.equal`, one for each equality up to renaming, and their hashes."""
    own = _described(found, found.equal)
    class_form = found.table.form[found.of], found.table.sequence[found.of]
    forms, _ = pair_form(class_form, own)
    unique, first = np.unique(forms, return_index=True)
    return first, unique


def _double(found: Enumeration, max_operators: int) -> tuple[list[tuple[int, int]], int]:
    """Rows of both halves of one split, each equal to a class with another term."""
    names = [each.operator for each in found.preset.applications]
    halves: dict[tuple[int, int, int], dict[str, int]] = {}
    is_split = np.array([name.startswith("split") for name in names])[found.equal.code]
    for row in np.flatnonzero(is_split):
        application = found.preset.applications[found.equal.code[row]]
        axis = int(str(application.params[0]))
        key = (axis, int(found.equal.place[row]), int(found.equal.a[row]))
        halves.setdefault(key, {})[application.operator] = int(row)
    pairs = [(h["split0"], h["split1"]) for h in halves.values() if len(h) == 2]
    if not pairs:
        return [], 0
    rows = np.array(pairs)
    classes = found.of[rows]
    whole = found.equal.a[rows[:, 0]]
    shape = np.where(found.table.cost[classes].max(axis=1) > 0)[0]
    rows, classes, whole = rows[shape], classes[shape], whole[shape]
    table = found.table
    sequence, places = merge(table.sequence[classes[:, 0]], table.sequence[classes[:, 1]])
    forms = mix(mix(table.form[classes[:, 0]], table.form[classes[:, 1]]), places)
    forms, _ = pair_form((forms, sequence), (table.form[whole], table.sequence[whole]))
    _, first = np.unique(forms, return_index=True)
    kept = [tuple(map(int, rows[at])) for at in sorted(first)]
    return [(a, b) for a, b in kept], len(rows)


class _Builder:
    """Terms of classes, each built once."""

    def __init__(self, found: Enumeration) -> None:
        self.found = found
        self.terms: dict[int, Term] = {}

    def term(self, number: int) -> Term:
        if number not in self.terms:
            table = self.found.table
            columns = (table.code, table.place, table.a, table.b)
            code, place, a, b = (int(column[number]) for column in columns)
            if code == INPUT:
                self.terms[number] = Input(self.found.preset.inputs[number].name)
            else:
                self.terms[number] = self._apply(code, place, a, b)
        return self.terms[number]

    def _apply(self, code: int, place: int, a: int, b: int) -> Term:
        application = self.found.preset.applications[code]
        params = application.params if not place else (*application.params, place)
        args = tuple(self.term(each) for each in (a, b) if each >= 0)
        return Apply(application.operator, params, args)

    def application(self, row: int) -> Term:
        batch = self.found.equal
        columns = (batch.code, batch.place, batch.a, batch.b)
        return self._apply(*(int(column[row]) for column in columns))

    def rule(self, row: int) -> Rule:
        """The larger side on the left."""
        left, right = self.application(row), self.term(int(self.found.of[row]))
        if operator_count(left) < operator_count(right):
            left, right = right, left
        return Rule((left,), (right,))

    def split_rule(self, first: int, second: int) -> Rule:
        classes = (int(self.found.of[first]), int(self.found.of[second]))
        left = tuple(self.term(each) for each in classes)
        return Rule(left, (self.application(first), self.application(second)))
