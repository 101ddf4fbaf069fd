"""Walks over index expressions and conditions: what occurs in them, and what takes its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
    sum_of,
)


def atoms_of(expression: Index) -> Iterator[IndexExpr]:
    """Every Var, Decision and Element below an expression, depth first, with repetitions."""
    match expression:
        case int():
            return
        case Var() | Decision():
            yield expression
        case Poly(terms):
            for monomial, _ in terms:
                for atom in monomial:
                    if isinstance(atom, Var):
                        yield atom
                    else:
                        yield from atoms_of(atom)
        case ExactDiv(a, b) | FloorDiv(a, b) | Mod(a, b) | Min(a, b) | Max(a, b):
            yield from atoms_of(a)
            yield from atoms_of(b)
        case Element(_, indices):
            yield expression
            for index in indices:
                yield from atoms_of(index)


def free_vars(*expressions: Index) -> frozenset[Var]:
    """The loop variables that occur in some of the expressions."""
    return frozenset(a for e in expressions for a in atoms_of(e) if isinstance(a, Var))


def decisions_of(*expressions: Index) -> frozenset[Decision]:
    """The decisions that occur in some of the expressions."""
    return frozenset(a for e in expressions for a in atoms_of(e) if isinstance(a, Decision))


def substitute(expression: Index, mapping: Mapping[Any, Index]) -> Index:
    """Replace Vars and Decisions by index expressions, simplifying again on the way up."""
    if isinstance(expression, int):
        return expression
    if isinstance(expression, (Var, Decision)):
        return mapping.get(expression, expression)
    return _rebuilt(expression, lambda part: substitute(part, mapping))


def map_elements(expression: Index, on_element: Callable[[Element], Index]) -> Index:
    """Replace every tensor element used as an index, innermost first."""
    if isinstance(expression, (int, Var, Decision)) or not any(
        isinstance(atom, Element) for atom in atoms_of(expression)
    ):
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
