"""Make a loop nest smaller without changing what it does.

Find the comparisons that guard parts of a loop nest.

Fold the constants of a value, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations

from tensorwright import expr
from tensorwright.base import DType
from tensorwright.expr import condition_sides as _sides
from tensorwright.loop import ir, traversal
from tensorwright.loop.scalars import convert, function_of, quiet
from tensorwright.schedule import THREADS


def is_contradictory(condition: expr.Condition) -> bool:
    """Whether two inequalities of a conjunction exclude each other, whatever they compare.

    Theorem:  a >= 0 and b >= 0 give a + b >= 0, so that a + b = c < 0 for a number c is impossible.
    """
    gaps = [
        expr.gap_of(part) for part in expr.conjuncts(condition) if isinstance(part, expr.Compare)
    ]
    sums = (a + b for a, b in combinations([gap for gap in gaps if gap is not None], 2))
    return any(isinstance(total, int) and total < 0 for total in sums)


def guards_of(statement: ir.Stmt, inner: expr.Bounds) -> Iterator[tuple[expr.Compare, expr.Bounds]]:
    """Every comparison that guards a statement, with the ranges of the variables bound inside."""
    match statement:
        case ir.If(condition, then):
            yield from ((leaf, inner) for leaf in expr.comparisons_of(condition))
            yield from guards_of(then, inner)
        case ir.For(var, extent, _, body):
            yield from guards_of(body, {**inner, var: expr.Range.of_extent(extent)})
        case ir.Store(_, _, value):
            yield from ((leaf, inner) for leaf in _selected(value))
        case _:
            for child in traversal.children_of(statement):
                yield from guards_of(child, inner)


def _selected(value: expr.Value) -> Iterator[expr.Compare]:
    if isinstance(value, expr.Select) and not isinstance(value.condition, expr.ValueExpr):
        yield from expr.comparisons_of(value.condition)
    for child in expr.children(value):
        yield from _selected(child)


def affine_in(gap: expr.Index, var: expr.Var) -> tuple[int, expr.Index] | None:
    """(a, r) where gap = a*var + r and r does not contain var."""
    scale = 0
    rest: expr.Index = 0
    for monomial, coefficient in expr.terms_of(gap):
        if monomial == (var,):
            scale = coefficient
        else:
            term: expr.Index = coefficient
            for atom in monomial:
                term = term * atom
            rest = rest + term
    if scale == 0 or var in expr.free_vars(rest):
        return None
    return scale, rest


Decide = Callable[[expr.Condition, expr.Bounds], expr.Condition]

_ARITHMETIC = frozenset(
    (expr.Fn.ADD, expr.Fn.SUB, expr.Fn.MUL, expr.Fn.MIN, expr.Fn.MAX, expr.Fn.NEG, expr.Fn.ABS)
)
_COMPARED = frozenset(
    (
        expr.Fn.LT,
        expr.Fn.LE,
        expr.Fn.EQ,
        expr.Fn.NE,
        expr.Fn.AND,
        expr.Fn.OR,
        expr.Fn.XOR,
        expr.Fn.NOT,
    )
)


def fold_value(value: expr.Value, bounds: expr.Bounds, decide: Decide) -> expr.Value:
    """An equal value: constant parts computed, neutral operands dropped, decided branches taken.

    Rewrite:  x*1 -> x    x/1 -> x    x - 0 -> x    max(x, -inf) -> x    2*3 -> 6
              select(true, x, y) -> x               and for ints: x + 0 -> x    x*0 -> 0
    The result is the same for every input, down to the sign of zero: x + 0.0 stays (it turns -0
    to 0), x + -0.0 goes.
    """
    match value:
        case expr.Const():
            return value
        case expr.Load(source, indices):
            return expr.Load(source, tuple(expr.simplify(index, bounds) for index in indices))
        case expr.FromIndex(index, dtype):
            simple = expr.simplify(index, bounds)
            fits = (
                isinstance(simple, int) and dtype.is_int and dtype.lowest <= simple <= dtype.highest
            )
            if isinstance(simple, int) and fits:
                return expr.constant(simple, dtype)
            return expr.FromIndex(simple, dtype)
        case expr.Cast(operand, dtype):
            return _cast(fold_value(operand, bounds, decide), dtype)
        case expr.Select(condition, then, otherwise):
            return _select(condition, then, otherwise, bounds, decide)
        case expr.Apply(fn, args):
            return _apply(fn, tuple(fold_value(arg, bounds, decide) for arg in args))


def _cast(operand: expr.Value, dtype: DType) -> expr.Value:
    if operand.dtype is dtype:
        return operand
    if isinstance(operand, expr.Const) and math.isfinite(operand.value):
        with quiet():
            number = operand.dtype.numpy.type(operand.value)
            return expr.constant(convert(number, operand.dtype, dtype), dtype)
    return expr.Cast(operand, dtype)


def _select(
    condition: expr.Condition | expr.Value,
    then: expr.Value,
    otherwise: expr.Value,
    bounds: expr.Bounds,
    decide: Decide,
) -> expr.Value:
    if isinstance(condition, expr.ValueExpr):
        chosen = fold_value(condition, bounds, decide)
        if isinstance(chosen, expr.Const):
            return fold_value(then if chosen.value else otherwise, bounds, decide)
        first, second = fold_value(then, bounds, decide), fold_value(otherwise, bounds, decide)
        return first if first == second else expr.Select(chosen, first, second)
    decided = decide(condition, bounds)
    if isinstance(decided, bool):
        return fold_value(then if decided else otherwise, bounds, decide)
    first, second = fold_value(then, bounds, decide), fold_value(otherwise, bounds, decide)
    if first == second and isinstance(first, expr.Const):
        return first
    return expr.Select(decided, first, second)


def _apply(fn: expr.Fn, args: tuple[expr.Value, ...]) -> expr.Value:
    dtype = args[0].dtype
    if all(isinstance(arg, expr.Const) for arg in args) and fn in _ARITHMETIC | _COMPARED:
        return _computed(fn, tuple(arg for arg in args if isinstance(arg, expr.Const)))
    if len(args) != 2 or dtype is DType.BOOL or fn.gives_bool:
        return expr.Apply(fn, args)
    left, right = args
    if _is_neutral(fn, right):
        return left
    if fn in (expr.Fn.ADD, expr.Fn.MUL, expr.Fn.MIN, expr.Fn.MAX) and _is_neutral(fn, left):
        return right
    if (
        fn is expr.Fn.MUL
        and dtype.is_int
        and any((isinstance(arg, expr.Const) and arg.value == 0) for arg in args)
    ):
        return expr.constant(0, dtype)
    return expr.Apply(fn, args)


def _computed(fn: expr.Fn, args: tuple[expr.Const, ...]) -> expr.Value:
    dtype = args[0].dtype
    with quiet():
        numbers = [dtype.numpy.type(arg.value) for arg in args]
        result = function_of(fn, dtype)(*numbers)
    folded = expr.constant(result, DType.BOOL if fn.gives_bool else dtype)
    return (
        expr.Apply(fn, args)
        if isinstance(folded.value, float) and folded.value != folded.value
        else folded
    )


def _is_neutral(fn: expr.Fn, value: expr.Value) -> bool:
    """Whether `x fn value` is x for every x, NaN and signed zeros included."""
    if not isinstance(value, expr.Const):
        return False
    negative = math.copysign(1.0, value.value) < 0
    match fn:
        case expr.Fn.MUL | expr.Fn.DIV:
            return value.value == 1
        case expr.Fn.ADD:
            return value.value == 0 and (not value.dtype.is_float or negative)
        case expr.Fn.SUB:
            return value.value == 0 and (not value.dtype.is_float or not negative)
        case expr.Fn.MAX:
            return bool(value.value == value.dtype.lowest)
        case expr.Fn.MIN:
            return bool(value.value == value.dtype.highest)
        case _:
            return False


EMPTY = ir.Block(())


def simplify_loops(program: ir.LoopProgram) -> ir.LoopProgram:
    """Simplify indices, conditions and values; drop single iterations, dead branches, dead buffers.

    Rewrite:  for i in 0..1: S                               ->  S[i := 0]
              for i in 0..0: S                               ->  nothing
              for i in 0..8: if i < 8: S                     ->  for i in 0..8: S
              if c: if c and d: S                            ->  if c and d: S
              if 1 <= i and i <= 0: S                        ->  nothing
              for i in 0..8: if 7 <= i: S                    ->  for i in 0..8: if 7 <= i: S[i := 7]
              for i in 0..8: if i//4 < 1: S[i//4]            ->  for i in 0..8: if i//4 < 1: S[0]
              for i in 0..4: for j in 0..8: A[(i*8 + j)//8]  ->  for i in 0..4: for j in 0..8: A[i]
              local t: t[i] = x; A[i] = y   (t not read)     ->  A[i] = y
    Floats are folded only where the result is the same for every input: x*1, x/1, x-0, but not
    x+0 (it turns -0 to 0).
    """
    body = program.body
    while True:
        smaller = simplify_statement(_without_dead_buffers(body), {})
        if smaller == body:
            return ir.LoopProgram(program.name, program.parameters, body)
        body = smaller


def simplify_statement(
    statement: ir.Stmt, bounds: expr.Bounds, facts: frozenset[expr.Condition] = frozenset()
) -> ir.Stmt:
    """Simplify a statement inside the ranges `bounds` where the conditions `facts` hold."""
    match statement:
        case ir.Block(statements):
            return ir.block(*(simplify_statement(part, bounds, facts) for part in statements))
        case ir.For():
            return _loop(statement, bounds, facts)
        case ir.If(condition, then):
            return _branch(condition, then, bounds, facts)
        case ir.Allocate(buffer, body):
            inner = simplify_statement(body, bounds, facts)
            return ir.Allocate(buffer, inner) if traversal.is_used(buffer, inner) else inner
        case ir.Store(buffer, indices, value):
            folded = fold_value(value, bounds, lambda c, b: decide(c, b, facts))
            return ir.Store(buffer, _indices(indices, bounds), folded)
        case ir.LaneFold():
            return replace(statement, indices=_indices(statement.indices, bounds))
        case ir.StartCopy():
            return traversal.map_children(
                lambda part: simplify_statement(part, bounds, facts), statement
            )
        case ir.GroupStatement():
            return statement
        case ir.Prefetch(buffer, indices, level):
            return ir.Prefetch(buffer, _indices(indices, bounds), level)
        case ir.Call(intrinsic, windows, meaning):
            moved = tuple(ir.Window(w.buffer, _indices(w.indices, bounds)) for w in windows)
            return ir.Call(intrinsic, moved, simplify_statement(meaning, bounds, facts))


def _indices(indices: tuple[expr.Index, ...], bounds: expr.Bounds) -> tuple[expr.Index, ...]:
    return tuple(expr.simplify(index, bounds) for index in indices)


def _loop(loop: ir.For, bounds: expr.Bounds, facts: frozenset[expr.Condition]) -> ir.Stmt:
    extent = expr.simplify(loop.extent, bounds)
    if expr.is_nonnegative(-extent, bounds):
        return EMPTY
    if extent == 1 and not (
        loop.kind in THREADS
        and any(isinstance(x, ir.GroupStatement) for x in traversal.walk(loop.body))
    ):
        return simplify_statement(
            traversal.substitute_statement(loop.body, {loop.var: 0}), bounds, facts
        )
    inside: dict[expr.Var, expr.Range] = {**bounds, loop.var: expr.Range.of_extent(extent)}
    body = simplify_statement(loop.body, inside, facts)
    return body if traversal.is_empty(body) else ir.For(loop.var, extent, loop.kind, body)


def _branch(
    condition: expr.Condition, then: ir.Stmt, bounds: expr.Bounds, facts: frozenset[expr.Condition]
) -> ir.Stmt:
    decided = decide(condition, bounds, facts)
    if isinstance(decided, bool):
        return simplify_statement(then, bounds, facts) if decided else EMPTY
    if is_contradictory(decided):
        return EMPTY
    pure = (part for part in expr.conjuncts(decided) if not traversal.reads_memory(*_sides(part)))
    inside = expr.narrowed(bounds, expr.conjuncts(decided))
    fixed = {var: r.low for var, r in inside.items() if r.low == r.high and bounds[var] != r}
    if fixed:
        then = traversal.substitute_statement(then, fixed)
    parts = _fixed_parts(bounds, expr.conjuncts(decided))
    if parts:
        then = traversal.map_statement(then, lambda index: expr.replace_parts(index, parts))
    body = simplify_statement(then, inside, facts.union(pure))
    if traversal.is_empty(body):
        return EMPTY
    if isinstance(body, ir.If) and not traversal.reads_memory(*_sides(body.condition)):
        # else it may need the guard
        return ir.If(expr.all_of(decided, body.condition), body.then)
    return ir.If(decided, body)


def _fixed_parts(
    bounds: expr.Bounds, holding: tuple[expr.Condition, ...]
) -> dict[expr.Index, expr.Index]:
    """The quotients, remainders, minima, maxima that have one value where a conjunction holds."""
    ranges: dict[expr.Index, expr.Range] = {}
    for atom, scale, rest in expr.limits_of(holding):
        reach = ranges.get(atom) or expr.interval(atom, bounds)
        if isinstance(atom, expr.FloorDiv | expr.Mod | expr.Min | expr.Max) and reach is not None:
            ranges[atom] = expr.limited(reach, scale, rest)
    return {
        atom: reach.low
        for atom, reach in ranges.items()
        if isinstance(reach.low, int) and reach.low == reach.high
    }


def decide(
    condition: expr.Condition, bounds: expr.Bounds, facts: frozenset[expr.Condition]
) -> expr.Condition:
    """Simplify a condition where the conditions `facts` hold: its parts and negations, too."""
    simple = expr.simplify_condition(condition, bounds)
    return _assume(simple, facts) if facts else simple


def _assume(condition: expr.Condition, facts: frozenset[expr.Condition]) -> expr.Condition:
    if condition in facts:
        return True
    match condition:
        case expr.And(parts):
            return expr.all_of(*(_assume(part, facts) for part in parts))
        case expr.Or(parts):
            return expr.any_of(*(_assume(part, facts) for part in parts))
        case expr.Not(part):
            return expr.negate(_assume(part, facts))
        case _:
            return False if expr.negate(condition) in facts else condition


def _without_dead_buffers(statement: ir.Stmt) -> ir.Stmt:
    """Drop allocated buffers that nothing reads, with the stores to them."""
    allocated = {part.buffer for part in traversal.walk(statement) if isinstance(part, ir.Allocate)}
    dead = allocated - traversal.buffers_read(statement)
    dead -= {
        w.buffer for p in traversal.walk(statement) if isinstance(p, ir.Call) for w in p.windows
    }
    return _drop(statement, dead) if dead else statement


def _drop(statement: ir.Stmt, dead: set[ir.Buffer]) -> ir.Stmt:
    match statement:
        case ir.Store(buffer, _, _) | ir.Prefetch(buffer, _) if buffer in dead:
            return EMPTY
        case ir.Allocate(buffer, body) if buffer in dead:
            return _drop(body, dead)
        case _:
            return traversal.map_children(lambda child: _drop(child, dead), statement)
