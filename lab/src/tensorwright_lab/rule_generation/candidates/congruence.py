"""From equal applications to candidate rules, on arrays; only remaining ones become terms.

    matmul(x1, w1) ..., matmul(x2, w1) ...     one equality up to renaming
    relu(tanh(relu(x))) == ... holds for any t in the place of relu(x)
    what is kept                               the equality about t alone

renaming         equalities that differ only in the names of inputs are one: equal hashes
common subgraph  an operator on inputs stands on both sides, and the equality with an input in its
                 place was found, too: a smaller rule says it.  Where that one holds, but there was
                 no such input, one of all equalities that it says is left.  TASO drops such rules
                 unseen, and with them `relu(relu(x)) == relu(x)`.  What TASO calls a common output
                 cannot occur: arguments that differ are different classes.

Source:  Jia et al., SOSP 2019, section 2.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright.rewriting.operators import IntShape
from tensorwright.rewriting.terms import Input, Rule
from tensorwright_lab.rule_generation.candidates.term_builder import TermBuilder
from tensorwright_lab.rule_generation.enumerate.classes import Batch, Places
from tensorwright_lab.rule_generation.enumerate.enumerate import Enumeration
from tensorwright_lab.rule_generation.enumerate.grouping import Described, combined, describe
from tensorwright_lab.rule_generation.enumerate.renaming import mix, pair_form
from tensorwright_lab.rule_generation.enumerate.sharing import families, nodes_of

_FRESH = 100
"""The number of an input that no preset has."""
_GROUP = 1 << 24
Shapes: TypeAlias = dict[str, IntShape]
RandomTrials: TypeAlias = Callable[[Sequence[Rule], Shapes], Sequence[bool]]
"""Whether each rule holds at random inputs of these shapes."""
_BLOCK = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class DistinctEqualities:
    """Equalities up to renaming, in a fixed order.

    row    the first of `enumeration.equal` of each, `form` their hashes in rising order
    which  for each of `enumeration.equal` which of these it is
    """

    row: Places
    form: NDArray[np.uint64]
    which: Places


@dataclass(frozen=True, slots=True, eq=False)
class Remaining:
    """Equalities that no other one of the enumeration says by congruence.

    row      of `enumeration.equal`
    same     pairs of numbers of `DistinctEqualities`: the first says what the second says
    """

    row: Places
    same: tuple[tuple[int, int], ...]


def distinct_equalities(enumeration: Enumeration) -> DistinctEqualities:
    """One equality of those that differ only in the names of inputs."""
    table, equal = enumeration.table, enumeration.equal
    forms = np.empty(len(equal), np.uint64)
    for at in range(0, len(equal), _BLOCK):
        part = np.arange(at, min(at + _BLOCK, len(equal)))
        own = describe(table, equal.batch.take(part))
        of = equal.of[part]
        sides = (table.form[of], table.sequence[of]), (own.form, own.sequence)
        forms[part], _ = pair_form(*sides)
    form, first, which = np.unique(forms, return_index=True, return_inverse=True)
    return DistinctEqualities(first, form, which.astype(np.intp))


def without_common_subgraphs(
    enumeration: Enumeration, each: DistinctEqualities, holding: RandomTrials
) -> Remaining:
    """The equalities that no smaller one says by congruence; see the module docstring.

    holding   says which rules hold at random inputs
    """
    general = _Generalised(enumeration, each.row)
    if not len(general.row):
        return Remaining(each.row, ())
    implied = general.row[np.isin(general.form, each.form)]
    rest = ~np.isin(general.row, implied)
    row, form = general.row[rest], general.form[rest]
    _, first, which = np.unique(form, return_index=True, return_inverse=True)
    rules, shapes = _fresh_rules(enumeration, general, np.flatnonzero(rest)[first])
    true = np.array(holding(rules, shapes), np.bool_)[which]
    order = np.lexsort((form[true], row[true]))
    row, form = row[true][order], form[true][order]
    row, at = np.unique(row, return_index=True)
    _, first, which = np.unique(form[at], return_index=True, return_inverse=True)
    kept = row[first][which]
    double = kept != row
    pairs = zip(each.which[kept[double]].tolist(), each.which[row[double]].tolist(), strict=True)
    left_out = np.concatenate([implied, row[double]])
    return Remaining(each.row[~np.isin(each.row, left_out)], tuple(pairs))


def _fresh_rules(
    enumeration: Enumeration, general: _Generalised, entries: Places
) -> tuple[list[Rule], Shapes]:
    """Rules with the common operator replaced by a fresh input, and the shapes of inputs."""
    table, builders = enumeration.table, dict[int, TermBuilder]()
    shapes = dict(enumeration.preset.shapes)
    rules = []
    for at in entries.tolist():
        leaf, row = int(general.leaf[at]), int(general.row[at])
        if leaf not in builders:
            shape = table.kinds[table.kind[leaf]].shape
            fresh = Input("_".join(map(str, ("fresh", *shape))))
            shapes[fresh.name] = shape
            builders[leaf] = TermBuilder(enumeration, {leaf: fresh})
        rules.append(builders[leaf].equality(row))
    return rules, shapes


class _Generalised:
    """Equalities with a fresh input in the place of a common operator on inputs.

    row    of the equality, `leaf` the class of the common operator; an equality may have several
    form   a hash of the equality that results, up to renaming
    """

    def __init__(self, enumeration: Enumeration, rows: Places) -> None:
        self.enumeration = enumeration
        self.row, self.leaf = _common_leaves(enumeration, rows)
        self.form = np.empty(len(self.row), np.uint64)
        self._input_form = self._forms_of_inputs()
        for at in range(0, len(self.row), _BLOCK):
            part = slice(at, at + _BLOCK)
            self.form[part] = self._forms(self.row[part], self.leaf[part])

    def _forms(self, row: Places, leaf: Places) -> NDArray[np.uint64]:
        equal = self.enumeration.equal
        batch = equal.batch.take(row)
        own = self._with_fresh(equal.of[row], leaf)
        sides = [self._with_fresh(arg.astype(np.intp), leaf) for arg in (batch.a, batch.b)]
        return pair_form(own, combined(batch, *sides))[0]

    def _with_fresh(self, classes: Places, leaf: Places) -> Described:
        """Forms and sequences of the terms of classes, with a leaf replaced by a fresh input."""
        table = self.enumeration.table
        forms, sequences = table.with_none()
        form, sequence = forms[classes], sequences[classes]
        here = (classes == leaf) & (classes >= 0)
        form[here] = self._input_form[table.kind[leaf[here]]]
        sequence[here] = -1
        sequence[here, 0] = _FRESH
        contains = (table.nodes[classes] == table.nodes[leaf, :1]).any(axis=1)
        inner = np.flatnonzero(contains & ~here & (classes >= 0))
        if len(inner):
            of = classes[inner]
            none = np.zeros((len(of), 0), np.uint64)
            code, cut, a, b = table.code[of], table.cut[of], table.a[of], table.b[of]
            batch = Batch(code, cut, a, b, table.kind[of], none)
            sides = [
                self._with_fresh(arg.astype(np.intp), leaf[inner]) for arg in (batch.a, batch.b)
            ]
            form[inner], sequence[inner] = combined(batch, *sides)
        return Described(form, sequence)

    def _forms_of_inputs(self) -> NDArray[np.uint64]:
        """The form of an input of each kind: that of the preset's, where it has one."""
        inputs = range(len(self.enumeration.preset.inputs))[::-1]
        table = self.enumeration.table
        own = {self._role(int(table.kind[at])): table.form[at] for at in inputs}
        other = mix(np.full(len(table.kinds), 7), np.arange(len(table.kinds)) + _GROUP)
        return np.array([own.get(self._role(at), form) for at, form in enumerate(other)], np.uint64)

    def _role(self, kind: int) -> tuple[tuple[int, ...], bool]:
        own = self.enumeration.table.kinds[kind]
        return own.shape, own.is_weight


def _common_leaves(enumeration: Enumeration, rows: Places) -> tuple[Places, Places]:
    """Rows and the classes of operators on inputs that stand on both sides of their equality."""
    table, equal = enumeration.table, enumeration.equal
    leaves = np.flatnonzero((table.cost == 1) & (table.a >= 0))
    node = table.nodes[leaves, 0]
    order = np.argsort(node, kind="stable")  # halves of a split tie: all CPUs must agree
    node, leaves = node[order], leaves[order]
    if not len(leaves):
        return rows[:0], rows[:0]
    own, _ = nodes_of(table, equal.batch.take(rows), families(enumeration.preset))
    other = table.nodes[equal.of[rows]]
    found_rows, found_leaves = [], []
    for at in range(other.shape[1]):
        column = other[:, at]
        index = np.minimum(np.searchsorted(node, column), len(node) - 1)
        common = (node[index] == column) & (own == column[:, None]).any(axis=1)
        found_rows.append(rows[common])
        found_leaves.append(leaves[index[common]])
    return np.concatenate(found_rows), np.concatenate(found_leaves)
