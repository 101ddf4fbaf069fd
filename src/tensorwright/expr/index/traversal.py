"""Walks over index expressions and conditions: find the parts of a kind, and replace parts.

Index expressions over any kind of number, by one walk for all kinds.

value_of_node(i*8 + j, {i: 3, j: 1}.__getitem__, INTEGERS)     25
... with arrays for i and j, over ARRAYS                       an array
... with index expressions for them, over SYMBOLS              an index expression

Conditions on index expressions: how they are built, walked and changed.

Their nodes are in `nodes.py`. A condition that is certain without any bounds is decided when it is
built: one that always holds is True itself.

    all_of(i >= 0, j < 4, True)                 i >= 0 and j < 4, whose `conjuncts` are the two
    map_condition(i < n, lambda side: side*2)   i*2 < n*2
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import floordiv
from typing import Any, Generic, TypeVar

import numpy as np

from tensorwright.expr.index import nodes
from tensorwright.expr.index.nodes import exact_div, floor_div, maximum, minimum, mod, sum_of
from tensorwright.expr.symbolic import noun_of, refused

Number = TypeVar("Number")


@dataclass(frozen=True, slots=True)
class Arithmetic(Generic[Number]):
    """The operations of index expressions on a kind of number; products are its `*`."""

    sum_of: Callable[[Iterable[Number]], Number]
    exact_div: Callable[[Number, Number], Number]
    floor_div: Callable[[Number, Number], Number]
    mod: Callable[[Number, Number], Number]
    minimum: Callable[[Number, Number], Number]
    maximum: Callable[[Number, Number], Number]


def _exact_quotient(dividend: int, divisor: int) -> int:
    quotient, remainder = divmod(dividend, divisor)
    if remainder:
        raise ValueError(f"{divisor} does not divide {dividend}")
    return quotient


INTEGERS: Arithmetic[int] = Arithmetic(sum, _exact_quotient, floordiv, lambda a, b: a % b, min, max)
ARRAYS = Arithmetic(sum, floordiv, floordiv, lambda a, b: a % b, np.minimum, np.maximum)
SYMBOLS: Arithmetic[nodes.Index] = Arithmetic(sum_of, exact_div, floor_div, mod, minimum, maximum)


def value_of_node(
    expression: nodes.IndexExpr, value: Callable[[nodes.Index], Number], over: Arithmetic[Number]
) -> Number:
    """The value of a node from those of its parts, for which `value` is asked.

    Raises:  TypeError for a node without arithmetic: a variable, a symbol, an element.
    """
    match expression:
        case nodes.Poly(terms):
            products: list[Any] = []
            for monomial, scale in terms:
                product: Any = scale
                for atom in monomial:
                    product = value(atom) * product
                products.append(product)
            return over.sum_of(products)
        case nodes.ExactDiv(a, b):
            return over.exact_div(value(a), value(b))
        case nodes.FloorDiv(a, b):
            return over.floor_div(value(a), value(b))
        case nodes.Mod(a, b):
            return over.mod(value(a), value(b))
        case nodes.Min(a, b):
            return over.minimum(value(a), value(b))
        case nodes.Max(a, b):
            return over.maximum(value(a), value(b))
    raise TypeError(f"an index expression without parts: {expression!r}")


def all_of(*parts: nodes.Condition) -> nodes.Condition:
    """Conjunction, flattened, without duplicates; empty is true."""
    kept: dict[nodes.Condition, None] = {}
    for part in map(_plain, parts):
        if part is False:
            return False
        for leaf in part.parts if isinstance(part, nodes.And) else (part,):
            if leaf is not True:
                kept[leaf] = None
    if len(kept) <= 1:
        return next(iter(kept), True)
    return nodes.And(tuple(kept))


def any_of(*parts: nodes.Condition) -> nodes.Condition:
    """Disjunction, flattened, without duplicates; empty is false."""
    kept: dict[nodes.Condition, None] = {}
    for part in map(_plain, parts):
        if part is True:
            return True
        for leaf in part.parts if isinstance(part, nodes.Or) else (part,):
            if leaf is not False:
                kept[leaf] = None
    if len(kept) <= 1:
        return next(iter(kept), False)
    return nodes.Or(tuple(kept))


def negate(condition: nodes.Condition) -> nodes.Condition:
    """Negation, pushed into comparisons."""
    match _plain(condition):
        case bool() as holds:
            return not holds
        case nodes.Compare(nodes.Relation.LT, left, right):
            return nodes.compare(nodes.Relation.LE, right, left)
        case nodes.Compare(nodes.Relation.LE, left, right):
            return nodes.compare(nodes.Relation.LT, right, left)
        case nodes.Compare(nodes.Relation.EQ, left, right):
            return nodes.Compare(nodes.Relation.NE, left, right)
        case nodes.Compare(_, left, right):
            return nodes.Compare(nodes.Relation.EQ, left, right)
        case nodes.Not(part):
            return part
        case nodes.And(parts):
            return any_of(*(negate(part) for part in parts))
        case nodes.Or(parts):
            return all_of(*(negate(part) for part in parts))


def _plain(condition: object) -> nodes.Condition:
    """A condition, for which a bool of NumPy may stand.

    Raises: ExpressionError for anything else.
    """
    if isinstance(condition, (bool, nodes.Compare, nodes.And, nodes.Or, nodes.Not)):
        return condition
    if isinstance(condition, np.bool_):
        return bool(condition)
    raise refused(
        noun_of(condition),
        "all_of, any_of and negate join conditions on indices",
        "&, | and ~ join conditions on values; a select on an index holds one on a value inside",
    )


def gap_of(guard: nodes.Compare) -> nodes.Index | None:
    """The expression that is >= 0 exactly where an inequality holds; None for == and !=."""
    match guard.relation:
        case nodes.Relation.LT:
            return guard.right - guard.left - 1
        case nodes.Relation.LE:
            return guard.right - guard.left
        case _:
            return None


def limits_of(holding: Iterable[nodes.Condition]) -> Iterator[tuple[nodes.IndexExpr, int, int]]:
    """(a, s, r) for each inequality s*a + r >= 0 of one atom."""
    for part in holding:
        gap = gap_of(part) if isinstance(part, nodes.Compare) else None
        terms = dict(nodes.terms_of(gap)) if gap is not None else {}
        rest = terms.pop((), 0)
        if len(terms) == 1:
            ((monomial, scale),) = terms.items()
            if len(monomial) == 1:
                yield monomial[0], scale, rest


def conjuncts(condition: nodes.Condition) -> tuple[nodes.Condition, ...]:
    """The conditions that hold together exactly where this one does."""
    return condition.parts if isinstance(condition, nodes.And) else (condition,)


def comparisons_of(condition: nodes.Condition) -> Iterator[nodes.Compare]:
    """Every comparison in a condition."""
    match condition:
        case nodes.Compare():
            yield condition
        case nodes.And(parts) | nodes.Or(parts):
            for part in parts:
                yield from comparisons_of(part)
        case nodes.Not(part):
            yield from comparisons_of(part)


def condition_sides(condition: nodes.Condition) -> Iterator[nodes.Index]:
    """Every index expression compared somewhere in a condition."""
    for comparison in comparisons_of(condition):
        yield comparison.left
        yield comparison.right


def map_comparisons(
    condition: nodes.Condition, change: Callable[[nodes.Compare], nodes.Condition]
) -> nodes.Condition:
    """The condition with every comparison replaced, simplified again on the way up."""
    match condition:
        case bool():
            return condition
        case nodes.Compare():
            return change(condition)
        case nodes.And(parts):
            return all_of(*(map_comparisons(part, change) for part in parts))
        case nodes.Or(parts):
            return any_of(*(map_comparisons(part, change) for part in parts))
        case nodes.Not(part):
            return negate(map_comparisons(part, change))


def map_condition(
    condition: nodes.Condition, on_index: Callable[[nodes.Index], nodes.Index]
) -> nodes.Condition:
    """The condition with both sides of every comparison changed."""
    return map_comparisons(
        condition,
        lambda each: nodes.compare(each.relation, on_index(each.left), on_index(each.right)),
    )


def atoms_of(expression: nodes.Index) -> tuple[nodes.IndexExpr, ...]:
    """Every Var, Symbol and Element below an expression, once, depth first."""
    if isinstance(expression, int):
        return ()
    try:
        return expression._atoms
    except AttributeError:
        object.__setattr__(expression, "_atoms", _collected(expression))
        return expression._atoms


def _collected(expression: nodes.IndexExpr) -> tuple[nodes.IndexExpr, ...]:
    is_atom = isinstance(expression, (nodes.Var, nodes.Symbol, nodes.Element))
    parts = (atom for part in nodes.parts_of(expression) for atom in atoms_of(part))
    return tuple(dict.fromkeys((*((expression,) if is_atom else ()), *parts)))


def free_vars(*expressions: nodes.Index) -> frozenset[nodes.Var]:
    """The loop variables that occur in some of the expressions."""
    if len(expressions) == 1:
        return _free_vars(expressions[0])
    return _NO_VARS.union(*map(_free_vars, expressions))


_NO_VARS: frozenset[nodes.Var] = frozenset()


def _free_vars(expression: nodes.Index) -> frozenset[nodes.Var]:
    if isinstance(expression, int):
        return _NO_VARS
    try:
        return expression._free
    except AttributeError:
        variables = frozenset(atom for atom in atoms_of(expression) if isinstance(atom, nodes.Var))
        object.__setattr__(expression, "_free", variables)
        return variables


def decisions_of(*expressions: nodes.Index) -> frozenset[nodes.Decision]:
    """The decisions that occur in some of the expressions."""
    return frozenset(a for e in expressions for a in atoms_of(e) if isinstance(a, nodes.Decision))


def symbols_of(*expressions: nodes.Index) -> tuple[nodes.Symbol, ...]:
    """The decisions and sizes that occur in some of the expressions, each once."""
    atoms = (atom for expression in expressions for atom in atoms_of(expression))
    return tuple(dict.fromkeys(atom for atom in atoms if isinstance(atom, nodes.Symbol)))


def has_element(expression: nodes.Index) -> bool:
    """Whether an element of a tensor is used somewhere in an expression."""
    return any(isinstance(atom, nodes.Element) for atom in atoms_of(expression))


def substitute(expression: nodes.Index, mapping: Mapping[Any, nodes.Index]) -> nodes.Index:
    """Replace Vars and Symbols by index expressions, simplifying again on the way up."""
    if isinstance(expression, int):
        return expression
    if isinstance(expression, (nodes.Var, nodes.Symbol)):
        return mapping.get(expression, expression)
    atoms = atoms_of(expression)
    if mapping.keys().isdisjoint(atoms):
        return expression
    return _substituted(expression, tuple([mapping.get(atom, atom) for atom in atoms]))


@lru_cache(maxsize=1 << 15)
def _substituted(expression: nodes.IndexExpr, values: tuple[nodes.Index, ...]) -> nodes.Index:
    mapping = dict(zip(atoms_of(expression), values, strict=True))
    return _rebuilt(expression, lambda part: substitute(part, mapping))


def replace_parts(
    expression: nodes.Index, mapping: Mapping[nodes.Index, nodes.Index]
) -> nodes.Index:
    """Replace whole quotients, remainders, minima and maxima, the outermost of several that are
    nested; simplifies again on the way up.
    """
    if isinstance(expression, int) or expression in mapping:
        return mapping.get(expression, expression)
    if isinstance(expression, nodes.Var | nodes.Symbol):
        return expression
    return _rebuilt(expression, lambda part: replace_parts(part, mapping))


def map_elements(
    expression: nodes.Index, on_element: Callable[[nodes.Element], nodes.Index]
) -> nodes.Index:
    """Replace every tensor element used as an index, innermost first."""
    if not has_element(expression) or isinstance(expression, int):
        return expression
    rebuilt = _rebuilt(expression, lambda part: map_elements(part, on_element))
    if isinstance(expression, nodes.Element) and isinstance(rebuilt, nodes.Element):
        return on_element(rebuilt)
    return rebuilt


def _rebuilt(
    expression: nodes.IndexExpr, again: Callable[[nodes.Index], nodes.Index]
) -> nodes.Index:
    """A node with parts, rebuilt from their replacements."""
    if type(expression) is nodes.Element:  # which is faster than to ask isinstance
        return nodes.Element(expression.source, tuple(map(again, expression.indices)))
    return value_of_node(expression, again, SYMBOLS)


def substitute_condition(
    condition: nodes.Condition, mapping: Mapping[Any, nodes.Index]
) -> nodes.Condition:
    """`substitute` on both sides of every comparison."""
    return map_condition(condition, lambda side: substitute(side, mapping))
