"""Index expressions and conditions as Python functions of an environment.

An environment is a list of ints with a slot for each loop variable; `Places` says which.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from tensorwright import expr
from tensorwright.base import InternalError
from tensorwright.expr import Decision, Index, decisions_of, substitute, substitute_condition
from tensorwright.loop.ir import Allocate, Buffer, LoopProgram, Packing, Parameter
from tensorwright.loop.passes.simplify import simplify_loops
from tensorwright.loop.traversal import substitute_statement, walk

Environment: TypeAlias = list[int]
IndexFunction: TypeAlias = Callable[[Environment], int]
ConditionFunction: TypeAlias = Callable[[Environment], bool]
Places: TypeAlias = Mapping[expr.Var, int]
ReadElement: TypeAlias = Callable[[expr.Element], IndexFunction]

_RELATIONS: dict[expr.Relation, Callable[[int, int], bool]] = {
    expr.Relation.LT: operator.lt,
    expr.Relation.LE: operator.le,
    expr.Relation.EQ: operator.eq,
    expr.Relation.NE: operator.ne,
}


def compile_index(index: expr.Index, places: Places, element: ReadElement) -> IndexFunction:
    """A function that computes `index`; `element` compiles the reading of a tensor's element.

    Raises:  InternalError for a decision; KeyError for a variable without a slot.
    """
    match index:
        case int():
            return lambda env: index
        case expr.Var():
            return operator.itemgetter(places[index])
        case expr.Poly(terms):
            return _sum(terms, places, element)
        case expr.Element():
            return element(index)
        case expr.FloorDiv(a, b) | expr.ExactDiv(a, b):
            return _binary(operator.floordiv, a, b, places, element)
        case expr.Mod(a, b):
            return _binary(operator.mod, a, b, places, element)
        case expr.Min(a, b):
            return _binary(min, a, b, places, element)
        case expr.Max(a, b):
            return _binary(max, a, b, places, element)
        case _:
            raise InternalError(
                stage="loop",
                where=f"index {index}",
                reason="it has no value while the program runs",
                remedy="bind the decisions first",
            )


def _binary(
    function: Callable[[int, int], int],
    a: expr.Index,
    b: expr.Index,
    places: Places,
    element: ReadElement,
) -> IndexFunction:
    left, right = compile_index(a, places, element), compile_index(b, places, element)
    return lambda env: function(left(env), right(env))


def _sum(
    terms: tuple[tuple[tuple[expr.IndexExpr, ...], int], ...], places: Places, element: ReadElement
) -> IndexFunction:
    base = 0
    affine: list[tuple[int, int]] = []
    other: list[tuple[int, tuple[IndexFunction, ...]]] = []
    for monomial, coefficient in terms:
        if not monomial:
            base = coefficient
        elif len(monomial) == 1 and isinstance(monomial[0], expr.Var):
            affine.append((places[monomial[0]], coefficient))
        else:
            factors = tuple(compile_index(atom, places, element) for atom in monomial)
            other.append((coefficient, factors))
    linear = _affine(base, affine)
    return _with_products(linear, tuple(other)) if other else linear


def _affine(base: int, terms: list[tuple[int, int]]) -> IndexFunction:
    match terms:
        case []:
            return lambda env: base
        case [(p, a)]:
            return lambda env: a * env[p] + base
        case [(p, a), (q, b)]:
            return lambda env: a * env[p] + b * env[q] + base
        case [(p, a), (q, b), (r, c)]:
            return lambda env: a * env[p] + b * env[q] + c * env[r] + base
        case [(p, a), (q, b), (r, c), (s, d)]:
            return lambda env: a * env[p] + b * env[q] + c * env[r] + d * env[s] + base
        case _:
            first, rest = _affine(base, terms[:4]), _affine(0, terms[4:])
            return lambda env: first(env) + rest(env)


def _with_products(
    linear: IndexFunction, products: tuple[tuple[int, tuple[IndexFunction, ...]], ...]
) -> IndexFunction:
    def compute(env: Environment) -> int:
        total = linear(env)
        for coefficient, factors in products:
            term = coefficient
            for factor in factors:
                term *= factor(env)
            total += term
        return total

    return compute


def compile_condition(
    condition: expr.Condition, places: Places, element: ReadElement
) -> ConditionFunction:
    """A function that decides `condition`; parts are tried in order until one decides."""
    match condition:
        case bool():
            return lambda env: condition
        case expr.Compare(relation, left, right):
            holds = _RELATIONS[relation]
            gap = None if _has_element(left, right) else right - left
            if gap is not None:
                difference = compile_index(gap, places, element)
                return lambda env: holds(0, difference(env))
            first = compile_index(left, places, element)
            second = compile_index(right, places, element)
            return lambda env: holds(first(env), second(env))
        case expr.And(parts):
            tests = tuple(compile_condition(part, places, element) for part in parts)
            return lambda env: all(test(env) for test in tests)
        case expr.Or(parts):
            choices = tuple(compile_condition(part, places, element) for part in parts)
            return lambda env: any(choice(env) for choice in choices)
        case expr.Not(part):
            inner = compile_condition(part, places, element)
            return lambda env: not inner(env)


def _has_element(*sides: expr.Index) -> bool:
    return any(isinstance(side, expr.Element) for side in sides)


def bind_decisions(program: LoopProgram, decisions: Mapping[Decision, int]) -> LoopProgram:
    """Replace decisions by their values everywhere and simplify.

    Rewrite:  for i_o in 0..128/?t: for i_i in 0..?t: S      with ?t = 32
                  ->  for i_o in 0..4: for i_i in 0..32: S
    Raises:   InternalError for a value that is not positive, or where a division that the program
              calls exact leaves a remainder.
    """
    for decision, value in decisions.items():
        if value < 1:
            _fail(program, f"{decision} = {value}, and a decision is positive")
    try:
        bound = _substituted(program, decisions)
    except ValueError as error:
        _fail(program, f"{error}, and the program needs an exact division")
    return simplify_loops(bound)


def _fail(program: LoopProgram, reason: str) -> None:
    raise InternalError(stage="loop", where=program.name, reason=reason) from None


def _substituted(program: LoopProgram, values: Mapping[Decision, int]) -> LoopProgram:
    buffers: dict[Buffer, Buffer] = {}
    for buffer in _buffers(program):
        if decisions_of(*buffer.shape):
            buffers[buffer] = replace(
                buffer, shape=tuple(substitute(extent, values) for extent in buffer.shape)
            )
    parameters = tuple(
        Parameter(
            buffers.get(p.buffer, p.buffer),
            p.role,
            None if p.packing is None else _packing(p.packing, values),
            p.source,
        )
        for p in program.parameters
    )
    body = substitute_statement(program.body, values, buffers)
    return LoopProgram(program.name, parameters, body)


def _buffers(program: LoopProgram) -> Iterable[Buffer]:
    yield from (parameter.buffer for parameter in program.parameters)
    yield from (part.buffer for part in walk(program.body) if isinstance(part, Allocate))


def _packing(packing: Packing, values: Mapping[Decision, int]) -> Packing:
    def bind(index: Index) -> Index:
        return substitute(index, values)

    return Packing(
        tuple((var, bind(extent)) for var, extent in packing.axes),
        tuple(bind(index) for index in packing.indices),
        substitute_condition(packing.valid, values),
        tuple(bind(extent) for extent in packing.source_shape),
        packing.derivation,
    )
