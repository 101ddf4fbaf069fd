"""How index expressions and conditions move with the loops around them.

An expression is a function of the loop variables: its value where all loops are at
their first iteration, and where one of them is at another one.  That depends on what the expression
means and not on how it is written, so that a loop nest with open decisions and the one lowered from
the same decisions taken give the same numbers.

The stated bound.  The range of an expression over some loops is taken to be the sum of its ranges
over each of them alone, the others at their first iteration: exact for sums of multiples of loop
variables, and for what fusing loops and shifting tiles make of them where a loop runs through whole
digits.  Its range over one loop is spanned by its values at the first and the last iteration and,
where a remainder is taken, at the last one before it starts again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tensorwright import expr
from tensorwright.base import InternalError
from tensorwright.tuning.features.columns import (
    CELLS,
    Cell,
    ColumnGraph,
    above,
    absolute,
    choose,
    either,
    floored,
    larger,
    same,
    smaller,
    total_of,
)


@dataclass(frozen=True, slots=True)
class LoopDependence:
    """How far an expression moves over one loop.

    span       the greatest distance from its value at the first iteration
    low, high  the least and the greatest signed distance
    is_strict  it moves wherever the loop has more than one iteration
    """

    span: Cell
    low: Cell
    high: Cell
    is_strict: bool


@dataclass(frozen=True, slots=True)
class ConditionBounds:
    """Whether a condition holds in all iterations, or in none; both 0: it depends.

    open_count  the number of its comparisons that depend on the iteration
    """

    always: Cell
    never: Cell
    open_count: Cell


class Variables:
    """Evaluates expressions at iterations of loops; mutable, one per statement.

    What it finds depends on the expression and on the extents of the loops that move, so the graph
    remembers it for all statements of all sketches whose columns it holds.
    """

    def __init__(self, graph: ColumnGraph) -> None:
        self.graph = graph
        self.extents: dict[expr.Var, Cell] = {}

    def add(self, var: expr.Var, extent: expr.Index) -> Cell:
        """Add a loop; gives its number of iterations."""
        self.extents[var] = self.first(extent)
        return self.extents[var]

    def clip(self, condition: expr.Condition) -> None:
        """Shorten loops by the iterations in which a condition never holds.

        Theorem: c*v + rest >= 0 with c < 0 holds for no v > rest/-c, and rest is at most what the
        bound on the other loops gives.
        """
        match condition:
            case expr.And(parts):
                for part in parts:
                    self.clip(part)
            case expr.Compare(expr.Relation.LT | expr.Relation.LE as relation, left, right):
                least = 1 if relation is expr.Relation.LT else 0
                shorter = {
                    var: self._clipped(left, right, least, var) for var in _moving(left, right)
                }
                self.extents |= shorter
            case _:
                pass

    def _clipped(self, left: expr.Index, right: expr.Index, least: int, var: expr.Var) -> Cell:
        """The iterations of a loop in which right - left >= least may hold."""
        coefficient = coefficient_of(left, var)
        if coefficient is None or var in expr.free_vars(right):
            return self.extents[var]
        rest = self.first(right) - self.first(left) - least
        for other in _moving(left, right):
            if other != var:
                rest = rest + self._gap_range(left, right, other)[1]
        step = self.first(coefficient)
        return smaller(self.extents[var], 1 + floored(larger(rest, 0), step))

    def limit(
        self, index: expr.Index, condition: expr.Condition, loops: Sequence[expr.Var]
    ) -> Cell | None:
        """The most values that an expression takes over some loops while a condition holds.

        A number if the condition bounds it from above: the same multiples of those loops' variables
        are in both.  None otherwise.
        """
        limit: Cell | None = None
        for part in expr.conjuncts(condition):
            match part:
                case expr.Compare(expr.Relation.LT | expr.Relation.LE as relation, left, right):
                    moving = expr.free_vars(left) | expr.free_vars(index)
                    inner = [var for var in loops if var in moving]
                    alike = all(
                        (step := coefficient_of(index, var)) is not None
                        and step == coefficient_of(left, var)
                        and var not in expr.free_vars(right)
                        for var in inner
                    )
                    if not inner or not alike:
                        continue
                    most = self.first(right) - self.first(left)
                    for var in (each for each in _moving(left, right) if each not in inner):
                        most = most + self._gap_range(left, right, var)[1]
                    count = larger(most + (0 if relation is expr.Relation.LT else 1), 1)
                    limit = count if limit is None else smaller(limit, count)
                case _:
                    pass
        return limit

    def first(self, index: expr.Index) -> Cell:
        """The value with all loops at their first iteration."""
        return self._value(index, None, 0)

    def moved(self, index: expr.Index, var: expr.Var, iteration: Cell) -> Cell:
        """The distance of the value at an iteration of a loop from the one at its first."""
        if var not in expr.free_vars(index):
            return 0
        return self._value(index, var, iteration) - self.first(index)

    def dependence(self, index: expr.Index, var: expr.Var) -> LoopDependence:
        """How far an expression moves with a loop that occurs in it."""
        key = index, var, self.extents[var]
        dependence = self.graph.dependences.get(key)
        if dependence is None:
            dependence = self.graph.dependences[key] = self._dependence(index, var)
        return dependence

    def _dependence(self, index: expr.Index, var: expr.Var) -> LoopDependence:
        start = self.first(index)
        step = coefficient_of(index, var)
        if step is not None:
            distance = self.first(step) * (self.extents[var] - 1)
            return LoopDependence(distance, 0, distance, is_strict=True)
        low: Cell = 0
        high: Cell = 0
        for iteration in self._iterations(var, index):
            distance = self._value(index, var, iteration) - start
            low, high = smaller(low, distance), larger(high, distance)
        return LoopDependence(larger(high, absolute(low)), low, high, is_strict=False)

    def period(self, index: expr.Index, var: expr.Var) -> Cell:
        """The iterations after which a remainder begins again; the loop's extent without one."""
        period = self.extents[var]
        for modulo in _remainders_in(index):
            wrap = self._wrap(modulo, var) if var in expr.free_vars(modulo.dividend) else None
            if wrap is not None:
                moves = above(wrap, 0)  # else it is the same in all iterations
                period = smaller(period, choose(moves, wrap + 1, self.extents[var]))
        return period

    def condition_bounds(self, condition: expr.Condition) -> ConditionBounds:
        """Whether a condition holds in all iterations, in none, or in some."""
        match condition:
            case bool():
                return ConditionBounds(int(condition), 1 - int(condition), 0)
            case expr.Compare(relation, left, right):
                return self._comparison(relation, left, right)
            case expr.Not(part):
                bounds = self.condition_bounds(part)
                return ConditionBounds(bounds.never, bounds.always, bounds.open_count)
            case expr.And(parts) | expr.Or(parts):
                bounds = self.condition_bounds(parts[0])
                always, never, count = bounds.always, bounds.never, bounds.open_count
                for part in parts[1:]:
                    other = self.condition_bounds(part)
                    count = count + other.open_count
                    if isinstance(condition, expr.And):
                        always, never = always * other.always, either(never, other.never)
                    else:
                        always, never = either(always, other.always), never * other.never
                return ConditionBounds(always, never, count)

    def _comparison(
        self, relation: expr.Relation, left: expr.Index, right: expr.Index
    ) -> ConditionBounds:
        """The bounds of left relation right, from the range of right - left."""
        low = high = self.first(right) - self.first(left)
        for var in _moving(left, right):
            near, far = self._gap_range(left, right, var)
            low, high = low + near, high + far
        match relation:
            case expr.Relation.LT:
                always, never = above(low, 0), above(1, high)
            case expr.Relation.LE:
                always, never = above(low, -1), above(0, high)
            case expr.Relation.EQ:
                always, never = same(low, 0) * same(high, 0), either(above(low, 0), above(0, high))
            case expr.Relation.NE:
                always, never = either(above(low, 0), above(0, high)), same(low, 0) * same(high, 0)
        return ConditionBounds(always, never, 1 - either(always, never))

    def _gap_range(self, left: expr.Index, right: expr.Index, var: expr.Var) -> tuple[Cell, Cell]:
        """The least and the greatest distance of right - left from its first value."""
        if var not in expr.free_vars(left):
            dependence = self.dependence(right, var)
            return dependence.low, dependence.high
        if var not in expr.free_vars(right):
            dependence = self.dependence(left, var)
            return 0 - dependence.high, 0 - dependence.low
        low: Cell = 0
        high: Cell = 0
        start = self.first(right) - self.first(left)
        for iteration in self._iterations(var, left, right):
            there = self._value(right, var, iteration) - self._value(left, var, iteration)
            low, high = smaller(low, there - start), larger(high, there - start)
        return low, high

    def _value(self, index: expr.Index, var: expr.Var | None, iteration: Cell) -> Cell:
        """The value with `var` at an iteration and all other loops at their first."""
        if isinstance(index, int):
            return index
        if var is not None and var not in expr.free_vars(index):
            var, iteration = None, 0
        key = index, var, iteration
        value = self.graph.values.get(key)
        if value is None:
            value = self.graph.values[key] = self._compute(index, var, iteration)
        return value

    def _compute(self, index: expr.Index, var: expr.Var | None, iteration: Cell) -> Cell:
        match index:
            case expr.Poly():  # most are
                pass
            case expr.Var():
                return iteration if index is var else 0
            case expr.Decision(name):
                return self.graph.column(name)
            case expr.Element(_, indices):  # as if the table held its own indices
                return total_of([self._value(each, var, iteration) for each in indices])
            case int() | expr.Symbol():
                raise InternalError(stage="tune", where=f"index {index}", reason="has no features")
        return expr.value_of_node(index, lambda part: self._value(part, var, iteration), CELLS)

    def _iterations(self, var: expr.Var, *expressions: expr.Index) -> list[Cell]:
        """The iterations at which expressions of a loop are evaluated, besides the first."""
        iterations = [self.extents[var] - 1]
        for modulo in (each for index in expressions for each in _remainders_in(index)):
            if var in expr.free_vars(modulo.dividend):
                wrap = self._wrap(modulo, var)
                if wrap is not None:
                    iterations.append(wrap)
        return iterations

    def _wrap(self, modulo: expr.Mod, var: expr.Var) -> Cell | None:
        """The last iteration before a remainder of c*var, or of c*var // d, starts again."""
        dividend, period = modulo.dividend, self.first(modulo.divisor)
        if isinstance(dividend, expr.FloorDiv):
            period = period * self.first(dividend.divisor)
            dividend = dividend.dividend
        step = coefficient_of(dividend, var)
        if step is None:
            return None
        wrap = floored(period - 1, self.first(step))
        return smaller(self.extents[var] - 1, wrap)


@lru_cache(maxsize=1 << 14)
def _remainders_in(index: expr.Index) -> tuple[expr.Mod, ...]:
    return tuple(_find_remainders(index))


def _find_remainders(index: expr.Index) -> Iterator[expr.Mod]:
    match index:
        case expr.Mod(a, _):
            yield index
            yield from _find_remainders(a)
        case expr.Poly(terms):
            for monomial, _ in terms:
                for atom in monomial:
                    yield from _find_remainders(atom)
        case expr.FloorDiv(a, b) | expr.ExactDiv(a, b) | expr.Min(a, b) | expr.Max(a, b):
            yield from _find_remainders(a)
            yield from _find_remainders(b)
        case _:
            return


@lru_cache(maxsize=1 << 14)
def _moving(left: expr.Index, right: expr.Index) -> tuple[expr.Var, ...]:
    """The loop variables on either side of a comparison, sorted."""
    return tuple(sorted(expr.free_vars(left, right), key=str))


@lru_cache(maxsize=1 << 14)
def coefficient_of(index: expr.Index, var: expr.Var) -> expr.Index | None:
    """The positive c of an expression c*var + rest, with no var in the rest; None for others."""
    factor_of_var: expr.Index | None = None
    for monomial, coefficient in expr.terms_of(index):
        if all(var not in expr.free_vars(atom) for atom in monomial):
            continue
        factor: expr.Index = coefficient
        for atom in monomial:
            if isinstance(atom, expr.Decision):
                factor = factor * atom
            elif atom != var:
                return None
        if factor_of_var is not None or monomial.count(var) > 1 or coefficient < 0:
            return None
        factor_of_var = factor
    return factor_of_var
