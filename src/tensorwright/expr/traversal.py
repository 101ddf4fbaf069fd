"""Walks over index expressions and conditions: what occurs in them, and what takes its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from tensorwright.expr.condition import map_condition
from tensorwright.expr.index import (
    Condition,
    Decision,
    Element,
    ExactDiv,
    FloorDiv,
    Index,
    IndexExpr,
    Max,
    Min,
    Mod,
    Poly,
    Var,
    exact_div,
    floor_div,
    maximum,
    minimum,
    mod,
    parts_of,
    sum_of,
)


def atoms_of(expression: Index) -> tuple[IndexExpr, ...]:
    """Every Var, Decision and Element below an expression, once, depth first."""
    if isinstance(expression, int):
        return ()
    try:
        return expression._atoms
    except AttributeError:
        object.__setattr__(expression, "_atoms", _collected(expression))
        return expression._atoms


def _collected(expression: IndexExpr) -> tuple[IndexExpr, ...]:
    is_atom = isinstance(expression, (Var, Decision, Element))
    parts = (atom for part in parts_of(expression) for atom in atoms_of(part))
    return tuple(dict.fromkeys((*((expression,) if is_atom else ()), *parts)))


def free_vars(*expressions: Index) -> frozenset[Var]:
    """The loop variables that occur in some of the expressions."""
    if len(expressions) == 1:
        return _free_vars(expressions[0])
    return _NO_VARS.union(*map(_free_vars, expressions))


_NO_VARS: frozenset[Var] = frozenset()


def _free_vars(expression: Index) -> frozenset[Var]:
    if isinstance(expression, int):
        return _NO_VARS
    try:
        return expression._free
    except AttributeError:
        found = frozenset(atom for atom in atoms_of(expression) if isinstance(atom, Var))
        object.__setattr__(expression, "_free", found)
        return found


def decisions_of(*expressions: Index) -> frozenset[Decision]:
    """The decisions that occur in some of the expressions."""
    return frozenset(a for e in expressions for a in atoms_of(e) if isinstance(a, Decision))


def has_element(expression: Index) -> bool:
    """Whether an element of a tensor is used somewhere in an expression."""
    return any(isinstance(atom, Element) for atom in atoms_of(expression))


def substitute(expression: Index, mapping: Mapping[Any, Index]) -> Index:
    """Replace Vars and Decisions by index expressions, simplifying again on the way up."""
    if isinstance(expression, int):
        return expression
    if isinstance(expression, (Var, Decision)):
        return mapping.get(expression, expression)
    atoms = atoms_of(expression)
    if mapping.keys().isdisjoint(atoms):
        return expression
    return _substituted(expression, tuple([mapping.get(atom, atom) for atom in atoms]))


@lru_cache(maxsize=1 << 15)
def _substituted(expression: IndexExpr, values: tuple[Index, ...]) -> Index:
    mapping = dict(zip(atoms_of(expression), values, strict=True))
    return _rebuilt(expression, lambda part: substitute(part, mapping))


def replace_parts(expression: Index, mapping: Mapping[Index, Index]) -> Index:
    """Replace whole quotients, remainders, minima and maxima, the outermost of several that are
    nested; simplifies again on the way up.
    """
    if isinstance(expression, int) or expression in mapping:
        return mapping.get(expression, expression)
    if isinstance(expression, Var | Decision):
        return expression
    return _rebuilt(expression, lambda part: replace_parts(part, mapping))


def map_elements(expression: Index, on_element: Callable[[Element], Index]) -> Index:
    """Replace every tensor element used as an index, innermost first."""
    if not has_element(expression) or isinstance(expression, int):
        return expression
    rebuilt = _rebuilt(expression, lambda part: map_elements(part, on_element))
    if isinstance(expression, Element) and isinstance(rebuilt, Element):
        return on_element(rebuilt)
    return rebuilt


def _rebuilt(expression: IndexExpr, again: Callable[[Index], Index]) -> Index:
    """A node that has parts, built anew from what becomes of them."""
    match expression:
        case Poly(terms):
            products = []
            for monomial, coefficient in terms:
                product: Index = coefficient
                for atom in monomial:
                    product = again(atom) * product
                products.append(product)
            return sum_of(products)
        case ExactDiv(a, b):
            return exact_div(again(a), again(b))
        case FloorDiv(a, b):
            return floor_div(again(a), again(b))
        case Mod(a, b):
            return mod(again(a), again(b))
        case Min(a, b):
            return minimum(again(a), again(b))
        case Max(a, b):
            return maximum(again(a), again(b))
        case Element(source, indices):
            return Element(source, tuple(again(index) for index in indices))
    raise TypeError(f"not an index expression: {expression!r}")


def substitute_condition(condition: Condition, mapping: Mapping[Any, Index]) -> Condition:
    """`substitute` on both sides of every comparison."""
    return map_condition(condition, lambda side: substitute(side, mapping))
