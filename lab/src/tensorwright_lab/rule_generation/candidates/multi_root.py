"""Rules with two outputs: pairs of graphs that share operators on one side.

    in     matmul(x, y) == split0(matmul(x, concat(y, z)))     z is not bound
    in     matmul(x, z) == split1(matmul(x, concat(y, z)))     y is not bound
    out    matmul(x, y), matmul(x, z) == split0(...), split1(...)

An equality with an input that its smaller side lacks, such as

    matmul(x, y) == split0[1, y.1](matmul(x, concat[1](y, z)))

does not determine z.  Two of them that share the operators below their roots and
bind each other's inputs make one rule: the products of x with y and with z are the two halves of
one product.  Pairs of equalities that bind all their inputs themselves need no such rule: each is
used alone, and what the results share is shared.  A pair is the same in either order.

Source:  Jia et al., SOSP 2019, section 2 (multi-output graphs); Yang et al., MLSys 2021, section 4
(why such rules need joint matching).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tensorwright.rewriting.terms import Apply, Input, Rule, Term, applications
from tensorwright_lab.rule_generation.candidates.term_builder import TermBuilder
from tensorwright_lab.rule_generation.enumerate.classes import Places
from tensorwright_lab.rule_generation.enumerate.enumerate import Enumeration
from tensorwright_lab.rule_generation.enumerate.grouping import describe
from tensorwright_lab.rule_generation.enumerate.renaming import merge, mix, pair_form
from tensorwright_lab.rule_generation.enumerate.sharing import union_size

_WHOLES = 4
"""Wholes of one pair of halves that are looked at."""
_WIDEST = 64
"""Of more open equalities about one argument the first are taken: they differ in names."""


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Rows of `enumeration.equal`, two for each rule; `count` of pairs before renaming."""

    first: Places
    second: Places
    count: int


def multi_root_pairs(enumeration: Enumeration, max_operators: int) -> Pairs:
    """Pairs of open equalities that bind each other, one of each up to renaming of inputs."""
    first, second = _candidates(enumeration, _open_rows(enumeration))
    table, equal = enumeration.table, enumeration.equal
    left = equal.of[first], equal.of[second]
    small = union_size(table.nodes[left[0]], table.nodes[left[1]])
    kept = (left[0] != left[1]) & (small <= max_operators) & (small > 0)
    whole = equal.batch.a[first]
    is_put_together = (table.a[whole] == left[0]) & (table.b[whole] == left[1])
    kept &= ~is_put_together
    first, second, left = first[kept], second[kept], (left[0][kept], left[1][kept])
    names, places = merge(table.sequence[left[0]], table.sequence[left[1]])
    argument = equal.batch.a[first]
    whole = table.sequence[argument]
    bound = ~_lacks(whole, names)
    first, second, names, places = first[bound], second[bound], names[bound], places[bound]
    forms = mix(mix(table.form[equal.of[first]], table.form[equal.of[second]]), places)
    argument = equal.batch.a[first]
    roots = mix(_root(enumeration, first), _root(enumeration, second))
    forms, _ = pair_form(
        (mix(forms, roots), names), (table.form[argument], table.sequence[argument])
    )
    _, chosen = np.unique(forms, return_index=True)
    chosen.sort()
    chosen = chosen[~_contain_another(enumeration, first, second, chosen)]
    return Pairs(first[chosen], second[chosen], len(first))


def _contain_another(
    enumeration: Enumeration, first: Places, second: Places, chosen: Places
) -> NDArray[np.bool_]:
    """Whether a smaller pair stands inside a chosen one.

    Where relu(A) and relu(B) are the halves of relu(C), and A and B those of C, the pair (A, B) and
    the equalities of relu and split say all.
    """
    table, equal = enumeration.table, enumeration.equal
    own = np.append(table.nodes, np.zeros((len(table), 1), np.uint64), axis=1)
    own_node = own[np.arange(len(table)), np.maximum(table.cost, 1) - 1]
    parts = [own_node[equal.of[rows]] for rows in (first, second)]
    wholes = own_node[equal.batch.a[first]]
    both = mix(*parts)
    order = np.argsort(both, kind="stable")
    both, wholes = both[order], wholes[order]
    left, right = (table.nodes[equal.of[rows[chosen]]] for rows in (first, second))
    whole = table.nodes[equal.batch.a[first[chosen]]]
    itself = own_node[equal.batch.a[first[chosen]]]
    contains = np.zeros(len(chosen), np.bool_)
    for a, b in product(range(left.shape[1]), repeat=2):
        wanted = mix(left[:, a], right[:, b])
        start = np.searchsorted(both, wanted, "left")
        for step in range(_WHOLES):
            index = np.minimum(start + step, len(both) - 1)
            same = (both[index] == wanted) & (left[:, a] != 0) & (right[:, b] != 0)
            inside = (whole == wholes[index][:, None]).any(axis=1) & (wholes[index] != itself)
            contains |= same & inside
    return contains


def _lacks(wanted: NDArray[np.int8], names: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Whether inputs of `wanted` are not among `names`, row by row."""
    missing = np.zeros(len(wanted), np.bool_)
    for at in range(wanted.shape[1]):
        column = wanted[:, at : at + 1]
        missing |= (column[:, 0] >= 0) & ~(column == names).any(axis=1)
    return missing


def _open_rows(enumeration: Enumeration) -> Places:
    """Applications of one argument with inputs that the term of their class lacks."""
    batch = enumeration.equal.batch
    unary = np.flatnonzero((batch.a >= 0) & (batch.b < 0))
    own = describe(enumeration.table, batch.take(unary)).sequence
    return unary[_lacks(own, enumeration.table.sequence[enumeration.equal.of[unary]])]


def _candidates(enumeration: Enumeration, rows: Places) -> tuple[Places, Places]:
    """Pairs of rows about the same argument, each pair once."""
    argument = enumeration.equal.batch.a[rows]
    order = np.argsort(argument, kind="stable")
    rows, argument = rows[order], argument[order]
    starts = np.flatnonzero(np.diff(argument, prepend=-2))
    index = np.arange(len(rows)) - np.repeat(starts, np.diff(np.append(starts, len(rows))))
    firsts, seconds = [rows[:0]], [rows[:0]]
    for step in range(1, min(_WIDEST, int(index.max(initial=0)) + 1)):
        near = index[step:] >= step
        firsts.append(rows[:-step][near])
        seconds.append(rows[step:][near])
    first, second = np.concatenate(firsts), np.concatenate(seconds)
    later = enumeration.equal.batch.code[first] > enumeration.equal.batch.code[second]
    return np.where(later, second, first), np.where(later, first, second)


def _root(enumeration: Enumeration, rows: Places) -> NDArray[np.int64]:
    batch = enumeration.equal.batch
    root: NDArray[np.int64] = batch.code[rows].astype(np.int64) * 64 + batch.cut[rows]
    return root


def multi_root_rule(builder: TermBuilder, first: int, second: int) -> Rule:
    """The terms of both classes on the left, the applications that share on the right."""
    equal = builder.enumeration.equal
    left = (builder.term(int(equal.of[first])), builder.term(int(equal.of[second])))
    return Rule(left, (builder.application(first), builder.application(second)))


def has_common_inputs(rule: Rule) -> bool:
    """Whether an operator on inputs stands on both sides: a smaller rule implies this one.

    relu(matmul(?x, ?y)) == relu(relu(matmul(?x, ?y)))
    relu(?t) == relu(relu(?t))        implies it, with matmul(?x, ?y) for ?t

    Such an operator may be an input itself; so does TASO prune (common subgraph).
    """
    return bool(_leaves(rule.left) & _leaves(rule.right))


def _leaves(roots: Sequence[Term]) -> set[Apply]:
    """The operators all of whose arguments are inputs; constants do not cause pruning."""
    return {
        each
        for each in applications(*roots)
        if each.args and all(isinstance(arg, Input) for arg in each.args)
    }
