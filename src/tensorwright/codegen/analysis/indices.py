"""Index expressions to `Linear`s, conditions to masks, in the environment of the loops.

The base class adds up terms that are linear in the loop variables, and decides conditions by their
ranges. A back end writes the rest: products, quotients, remainders, minima, elements, and masks,
which are the truth of a condition in one or all lanes.

Index values while code is written: a constant, scaled names, and a step per lane.

A `Linear` is const + sum(coefficient * name) + step * lane. Names are whatever the back end calls
its index values. Only what stays variable after unrolling is in it, so two copies of an unrolled
statement differ in the constant alone.

A transposed copy of a matrix, in blocks that are transposed in registers.

    for k in 0..n:  for i in 0..w @vectorize:  T[.., k, i] = S[.., i, k]

Each step reads w columns of a row of S for every lane i, transposes the w vectors in registers and
writes them. A gather would touch a cache line for each element, and every line w times.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from tensorwright import expr
from tensorwright.base import CpuTarget, InternalError
from tensorwright.codegen.analysis.facts import Facts
from tensorwright.loop import Buffer, For, Store, offset_of
from tensorwright.schedule import ForKind

Terms = tuple[tuple[str, int], ...]


class Linear(NamedTuple):
    """const + sum(coefficient * name) + step * lane."""

    const: int
    terms: Terms = ()
    step: int = 0


def combine(left: Linear, right: Linear, scale: int = 1) -> Linear:
    """left + scale * right."""
    const = left.const + scale * right.const
    step = left.step + scale * right.step
    if not right.terms:
        return Linear(const, left.terms, step)
    total = dict(left.terms)
    for name, coefficient in right.terms:
        total[name] = total.get(name, 0) + scale * coefficient
    return Linear(const, sorted_terms(total), step)


def scaled(value: Linear, factor: int) -> Linear:
    """factor * value."""
    return combine(Linear(0), value, factor) if factor != 1 else value


def sorted_terms(terms: Mapping[str, int]) -> Terms:
    """Terms in one order, without zeros."""
    if len(terms) == 1:
        ((name, coefficient),) = terms.items()
        return ((name, coefficient),) if coefficient else ()
    return tuple(sorted((n, c) for n, c in terms.items() if c))


def linear_range(
    value: Linear, lanes: int, ranges: Mapping[str, tuple[int, int]]
) -> tuple[int, int] | None:
    """Inclusive bounds over `lanes`, by the bounds of the names; None if one has none."""
    low = high = value.const
    reach = value.step * (lanes - 1)
    if reach > 0:
        high += reach
    else:
        low += reach
    for name, coefficient in value.terms:
        bounds = ranges.get(name)
        if bounds is None:
            return None
        first, last = bounds[0] * coefficient, bounds[1] * coefficient
        low += min(first, last)
        high += max(first, last)
    return low, high


Bounds: TypeAlias = tuple[int, int]
Mask = TypeVar("Mask")

# constant, variables with coefficients, other monomials with coefficients
_Plan = tuple[int, tuple[tuple[str, int], ...], tuple[tuple[tuple[expr.IndexExpr, ...], int], ...]]


class IndexEvaluator(ABC, Generic[Mask]):
    """Evaluates index expressions; `env` holds an int for each variable that is unrolled."""

    def __init__(self) -> None:
        self.env: dict[str, int | Linear] = {}
        self._plans: dict[int, tuple[object, _Plan]] = {}  # by id; keeps the key alive
        self._places: dict[tuple[int, str], tuple[object, _Plan]] = {}

    @abstractmethod
    def product(self, left: Linear, right: Linear) -> Linear:
        """left * right, neither of them a constant."""

    @abstractmethod
    def quotient(self, value: Linear, divisor: int, bounds: Bounds | None) -> Linear:
        """floor(value / divisor) for a positive divisor; nothing can be taken out."""

    @abstractmethod
    def quotient_by(self, value: Linear, divisor: Linear) -> Linear:
        """floor(value / divisor) for a positive divisor that only the running kernel knows."""

    @abstractmethod
    def remainder(self, value: Linear, divisor: int, bounds: Bounds | None) -> Linear:
        """value - divisor * floor(value / divisor); nothing can be taken out."""

    @abstractmethod
    def extreme(
        self, left: Linear, right: Linear, bounds: Bounds | None, *, is_min: bool
    ) -> Linear:
        """The smaller or the larger of two values, which their ranges do not decide; in bounds."""

    @abstractmethod
    def range_of(self, value: Linear, lanes: int = 0) -> Bounds | None:
        """Inclusive bounds over the real lanes (or over `lanes`), or None."""

    @abstractmethod
    def element(self, buffer: Buffer, indices: tuple[expr.Index, ...]) -> Linear:
        """An element of an integer buffer, as a number."""

    @abstractmethod
    def compared(self, relation: expr.Relation, gap: Linear) -> Mask:
        """Whether gap <relation> 0, which the ranges do not decide."""

    @abstractmethod
    def joined(self, left: Mask, right: Mask, *, is_and: bool) -> Mask:
        """Whether both hold, or one of them."""

    @abstractmethod
    def inverted(self, mask: Mask) -> Mask:
        """Whether it does not hold."""

    def condition(self, condition: expr.Condition) -> bool | Mask:
        """A condition as a bool if the ranges decide it, else as a mask."""
        match condition:
            case bool():
                return condition
            case expr.Compare(relation, left, right):
                plain = expr.without_division(relation, left, right)
                if not isinstance(plain, expr.Compare):
                    return self.condition(plain)
                gap = combine(self.evaluate(plain.left), self.evaluate(plain.right), -1)
                bounds = self.range_of(gap)
                decided = None if bounds is None else _decide(plain.relation, *bounds)
                return self.compared(plain.relation, gap) if decided is None else decided
            case expr.And(parts):
                return self._all_or_any(parts, is_and=True)
            case expr.Or(parts):
                return self._all_or_any(parts, is_and=False)
            case expr.Not(part):
                inner = self.condition(part)
                return not inner if isinstance(inner, bool) else self.inverted(inner)

    def _all_or_any(self, parts: tuple[expr.Condition, ...], *, is_and: bool) -> bool | Mask:
        total: Mask | None = None
        for part in parts:
            mask = self.condition(part)
            if not isinstance(mask, bool):
                total = mask if total is None else self.joined(total, mask, is_and=is_and)
            elif mask is not is_and:
                return mask
        return is_and if total is None else total

    def evaluate(self, index: expr.Index) -> Linear:
        """The value of an index expression."""
        if isinstance(index, int):
            return Linear(index)
        if isinstance(index, expr.Var):
            return self._variable(index)
        kept = self._plans.get(id(index))
        if kept is None:
            kept = self._plans[id(index)] = (index, _plan(index))
        return self._run(kept[1])

    def offset(self, buffer: Buffer, indices: tuple[expr.Index, ...]) -> Linear:
        """The row-major position of an element of a buffer."""
        key = (id(indices), buffer.name)
        kept = self._places.get(key)
        if kept is None:
            kept = self._places[key] = (indices, _plan(flat_index(buffer, indices)))
        return self._run(kept[1])

    def _run(self, plan: _Plan) -> Linear:
        const, variables, others = plan
        terms: dict[str, int] = {}
        step = 0
        env = self.env
        for variable, coefficient in variables:
            value = env.get(variable)
            if isinstance(value, int):
                const += coefficient * value
                continue
            linear = self._variable(expr.Var(variable)) if value is None else value
            const += coefficient * linear.const
            step += coefficient * linear.step
            for name, factor in linear.terms:
                terms[name] = terms.get(name, 0) + coefficient * factor
        total = Linear(const, sorted_terms(terms) if terms else (), step)
        for monomial, coefficient in others:
            total = combine(total, self._monomial(monomial), coefficient)
        return total

    def _variable(self, variable: expr.Var) -> Linear:
        value = self.env.get(variable.name)
        if value is None:
            raise InternalError(
                stage="codegen", where=f"variable {variable}", reason="no loop defines it"
            )
        return Linear(value) if isinstance(value, int) else value

    def _monomial(self, monomial: tuple[expr.IndexExpr, ...]) -> Linear:
        result = Linear(1)
        for atom in monomial:
            factor = self._atom(atom)
            if not factor.terms and not factor.step:
                result = scaled(result, factor.const)
            elif not result.terms and not result.step:
                result = scaled(factor, result.const)
            else:
                result = self.product(result, factor)
        return result

    def _atom(self, atom: expr.IndexExpr) -> Linear:
        match atom:
            case expr.Var():
                return self._variable(atom)
            case expr.FloorDiv(a, b) | expr.ExactDiv(a, b):
                divisor = self._divisor(atom, b)
                if isinstance(divisor, Linear):
                    return self.quotient_by(self.evaluate(a), divisor)
                return self._floor_divide(self.evaluate(a), divisor)
            case expr.Mod(a, b):
                value, divisor = self.evaluate(a), self._divisor(atom, b)
                if isinstance(divisor, Linear):
                    return self._modulus_of(value, divisor)
                return self._modulus(value, divisor)
            case expr.Min(a, b):
                return self._extreme(self.evaluate(a), self.evaluate(b), is_min=True)
            case expr.Max(a, b):
                return self._extreme(self.evaluate(a), self.evaluate(b), is_min=False)
            case expr.Element(source, indices):
                return self.element(source, indices)
            case expr.Symbol():
                return self._variable(expr.Var(size_name(atom)))
        return self.evaluate(atom)

    def _floor_divide(self, value: Linear, divisor: int) -> Linear:
        """Take the terms out of the quotient that the divisor divides."""
        whole = {n: c // divisor for n, c in value.terms if c % divisor == 0}
        rest_terms = tuple((n, c) for n, c in value.terms if c % divisor)
        step_whole = value.step // divisor if value.step % divisor == 0 else 0
        rest = Linear(value.const % divisor, rest_terms, 0 if step_whole else value.step)
        quotient = Linear(value.const // divisor, sorted_terms(whole), step_whole)
        bounds = self.range_of(rest)
        if bounds is not None and bounds[0] // divisor == bounds[1] // divisor:
            return combine(quotient, Linear(bounds[0] // divisor))
        return combine(quotient, self.quotient(rest, divisor, bounds))

    def _modulus(self, value: Linear, divisor: int) -> Linear:
        kept = tuple((n, c) for n, c in value.terms if c % divisor)
        rest = Linear(value.const % divisor, kept, value.step if value.step % divisor else 0)
        bounds = self.range_of(rest)
        if bounds is not None and bounds[0] // divisor == bounds[1] // divisor:
            return combine(rest, Linear(-(bounds[0] // divisor) * divisor))
        return self.remainder(rest, divisor, bounds)

    def _extreme(self, left: Linear, right: Linear, *, is_min: bool) -> Linear:
        gap = self.range_of(combine(right, left, -1))
        if gap is not None and gap[0] >= 0:
            return left if is_min else right
        if gap is not None and gap[1] <= 0:
            return right if is_min else left
        choose = min if is_min else max
        first, last = self.range_of(left), self.range_of(right)
        bounds = None
        if first is not None and last is not None:
            bounds = choose(first[0], last[0]), choose(first[1], last[1])
        return self.extreme(left, right, bounds, is_min=is_min)

    def _modulus_of(self, value: Linear, divisor: Linear) -> Linear:
        """As `_modulus`, for a divisor that only the running kernel knows."""
        quotient = self.quotient_by(value, divisor)
        return combine(value, self.product(quotient, divisor), -1)

    def _divisor(self, atom: expr.IndexExpr, divisor: expr.Index) -> int | Linear:
        """The divisor as a number if it is one."""
        value = self.evaluate(divisor)
        if value.terms:
            return value
        if value.step or value.const <= 0:
            raise InternalError(
                stage="codegen", where=f"index {atom}", reason="the divisor is not positive"
            )
        return value.const


def size_name(size: expr.Symbol) -> str:
    """The name of a named size in the environment: it has a space, as no loop variable has."""
    return f"size {size}"


def flat_index(buffer: Buffer, indices: tuple[expr.Index, ...]) -> expr.Index:
    """The row-major position of an element, before a swizzle; digits of one number are rejoined."""
    flat = offset_of(buffer, indices)
    is_digit = any(
        isinstance(atom, expr.Mod) for monomial, _ in expr.terms_of(flat) for atom in monomial
    )
    return expr.simplify(flat, {}) if is_digit else flat


def _plan(index: expr.Index) -> _Plan:
    const = 0
    variables: list[tuple[str, int]] = []
    others: list[tuple[tuple[expr.IndexExpr, ...], int]] = []
    for monomial, coefficient in expr.terms_of(index):
        if not monomial:
            const = coefficient
        elif len(monomial) == 1 and isinstance(monomial[0], expr.Var):
            variables.append((monomial[0].name, coefficient))
        else:
            others.append((monomial, coefficient))
    return const, tuple(variables), tuple(others)


def _decide(relation: expr.Relation, low: int, high: int) -> bool | None:
    """Whether x <relation> 0 for all x in low..high, or for none; None if for some."""
    if relation is expr.Relation.LT:
        return True if high < 0 else False if low >= 0 else None
    if relation is expr.Relation.LE:
        return True if high <= 0 else False if low > 0 else None
    if low > 0 or high < 0:
        return relation is expr.Relation.NE
    return relation is expr.Relation.EQ if low == high else None


@dataclass(frozen=True, slots=True)
class Transposition:
    """A loop nest that copies a matrix transposed.

    along   the loop along the rows of the source      across  the vector loop, `width` long
    """

    along: For
    across: For
    store: Store
    load: expr.Load
    width: int


def find_transposition(loop: For, facts: Facts, target: CpuTarget) -> Transposition | None:
    """The transposed copy that a serial loop is; None for other loops."""
    across = loop.body
    if not (isinstance(across, For) and isinstance(across.body, Store)):
        return None
    if facts.is_open(loop) or facts.is_open(across):
        return None
    store = across.body
    load = store.value
    if not isinstance(load, expr.Load) or load.source == store.buffer:
        return None
    if facts.kind(across) is not ForKind.VECTOR or load.dtype.size_bytes not in (4, 8):
        return None
    width = target.vector_bytes // load.dtype.size_bytes
    if facts.extent(across) != width or facts.extent(loop) % width or width < 4:
        return None
    read = _steps(load.source, load.indices, loop.var, across.var)
    written = _steps(store.buffer, store.indices, loop.var, across.var)
    if read is None or written is None or read[0] != 1 or written[1] != 1:
        return None
    return (
        None
        if read[1] in (0, 1) or not written[0]
        else Transposition(loop, across, store, load, width)
    )


def _steps(
    buffer: Buffer, indices: tuple[expr.Index, ...], along: expr.Var, across: expr.Var
) -> tuple[int, int] | None:
    """The distances of neighbours along two variables; None if one is not constant."""
    steps = {along: 0, across: 0}
    for monomial, coefficient in expr.terms_of(flat_index(buffer, indices)):
        moving = [var for var in steps if var in expr.free_vars(*monomial)]
        if moving and len(monomial) > 1:
            return None
        for var in moving:
            if monomial[0] != var:
                return None
            steps[var] = coefficient
    return steps[along], steps[across]
