"""Walks over index expressions and conditions: find the parts of a kind, and replace parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from tensorwright.expr.index.arithmetic import SYMBOLS, value_of_node
from tensorwright.expr.index.condition import map_condition
from tensorwright.expr.index.nodes import (
    Condition,
    Decision,
    Element,
    Index,
    IndexExpr,
    Symbol,
    Var,
    parts_of,
)


def atoms_of(expression: Index) -> tuple[IndexExpr, ...]:
    """Every Var, Symbol and Element below an expression, once, depth first."""
    if isinstance(expression, int):
        return ()
    try:
        return expression._atoms
    except AttributeError:
        object.__setattr__(expression, "_atoms", _collected(expression))
        return expression._atoms


def _collected(expression: IndexExpr) -> tuple[IndexExpr, ...]:
    is_atom = isinstance(expression, (Var, Symbol, Element))
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
        variables = frozenset(atom for atom in atoms_of(expression) if isinstance(atom, Var))
        object.__setattr__(expression, "_free", variables)
        return variables


def decisions_of(*expressions: Index) -> frozenset[Decision]:
    """The decisions that occur in some of the expressions."""
    return frozenset(a for e in expressions for a in atoms_of(e) if isinstance(a, Decision))


def symbols_of(*expressions: Index) -> tuple[Symbol, ...]:
    """The decisions and sizes that occur in some of the expressions, each once."""
    atoms = (atom for expression in expressions for atom in atoms_of(expression))
    return tuple(dict.fromkeys(atom for atom in atoms if isinstance(atom, Symbol)))


def has_element(expression: Index) -> bool:
    """Whether an element of a tensor is used somewhere in an expression."""
    return any(isinstance(atom, Element) for atom in atoms_of(expression))


def substitute(expression: Index, mapping: Mapping[Any, Index]) -> Index:
    """Replace Vars and Symbols by index expressions, simplifying again on the way up."""
    if isinstance(expression, int):
        return expression
    if isinstance(expression, (Var, Symbol)):
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
    if isinstance(expression, Var | Symbol):
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
    """A node with parts, rebuilt from their replacements."""
    if type(expression) is Element:  # which is faster than to ask isinstance
        return Element(expression.source, tuple(map(again, expression.indices)))
    return value_of_node(expression, again, SYMBOLS)


def substitute_condition(condition: Condition, mapping: Mapping[Any, Index]) -> Condition:
    """`substitute` on both sides of every comparison."""
    return map_condition(condition, lambda side: substitute(side, mapping))
