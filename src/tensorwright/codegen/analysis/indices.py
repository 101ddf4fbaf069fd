"""Index expressions to `Linear`s, conditions to masks, in the environment of the loops.

The base class adds up terms that are linear in the loop variables, and decides conditions by their
ranges. A back end writes the rest: products, quotients, remainders, minima, elements, and masks,
which are the truth of a condition in one or all lanes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeAlias, TypeVar

from tensorwright.base import InternalError
from tensorwright.codegen.analysis.linear import Linear, combine, scaled, sorted_terms
from tensorwright.expr import (
    And,
    Compare,
    Condition,
    Element,
    ExactDiv,
    FloorDiv,
    Index,
    IndexExpr,
    Max,
    Min,
    Mod,
    Not,
    Or,
    Relation,
    Symbol,
    Var,
    simplify,
    terms_of,
    without_division,
)
from tensorwright.loop import Buffer, offset_of

Bounds: TypeAlias = tuple[int, int]
Mask = TypeVar("Mask")

# constant, variables with coefficients, other monomials with coefficients
_Plan = tuple[int, tuple[tuple[str, int], ...], tuple[tuple[tuple[IndexExpr, ...], int], ...]]


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
    def element(self, buffer: Buffer, indices: tuple[Index, ...]) -> Linear:
        """An element of an integer buffer, as a number."""

    @abstractmethod
    def compared(self, relation: Relation, gap: Linear) -> Mask:
        """Whether gap <relation> 0, which the ranges do not decide."""

    @abstractmethod
    def joined(self, left: Mask, right: Mask, *, is_and: bool) -> Mask:
        """Whether both hold, or one of them."""

    @abstractmethod
    def inverted(self, mask: Mask) -> Mask:
        """Whether it does not hold."""

    def condition(self, condition: Condition) -> bool | Mask:
        """A condition as a bool if the ranges decide it, else as a mask."""
        match condition:
            case bool():
                return condition
            case Compare(relation, left, right):
                plain = without_division(relation, left, right)
                if not isinstance(plain, Compare):
                    return self.condition(plain)
                gap = combine(self.evaluate(plain.left), self.evaluate(plain.right), -1)
                bounds = self.range_of(gap)
                decided = None if bounds is None else _decide(plain.relation, *bounds)
                return self.compared(plain.relation, gap) if decided is None else decided
            case And(parts):
                return self._all_or_any(parts, is_and=True)
            case Or(parts):
                return self._all_or_any(parts, is_and=False)
            case Not(part):
                inner = self.condition(part)
                return not inner if isinstance(inner, bool) else self.inverted(inner)

    def _all_or_any(self, parts: tuple[Condition, ...], *, is_and: bool) -> bool | Mask:
        total: Mask | None = None
        for part in parts:
            mask = self.condition(part)
            if not isinstance(mask, bool):
                total = mask if total is None else self.joined(total, mask, is_and=is_and)
            elif mask is not is_and:
                return mask
        return is_and if total is None else total

    def evaluate(self, index: Index) -> Linear:
        """The value of an index expression."""
        if isinstance(index, int):
            return Linear(index)
        if isinstance(index, Var):
            return self._variable(index)
        kept = self._plans.get(id(index))
        if kept is None:
            kept = self._plans[id(index)] = (index, _plan(index))
        return self._run(kept[1])

    def offset(self, buffer: Buffer, indices: tuple[Index, ...]) -> Linear:
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
            linear = self._variable(Var(variable)) if value is None else value
            const += coefficient * linear.const
            step += coefficient * linear.step
            for name, factor in linear.terms:
                terms[name] = terms.get(name, 0) + coefficient * factor
        total = Linear(const, sorted_terms(terms) if terms else (), step)
        for monomial, coefficient in others:
            total = combine(total, self._monomial(monomial), coefficient)
        return total

    def _variable(self, variable: Var) -> Linear:
        value = self.env.get(variable.name)
        if value is None:
            raise InternalError(
                stage="codegen", where=f"variable {variable}", reason="no loop defines it"
            )
        return Linear(value) if isinstance(value, int) else value

    def _monomial(self, monomial: tuple[IndexExpr, ...]) -> Linear:
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

    def _atom(self, atom: IndexExpr) -> Linear:
        match atom:
            case Var():
                return self._variable(atom)
            case FloorDiv(a, b) | ExactDiv(a, b):
                divisor = self._divisor(atom, b)
                if isinstance(divisor, Linear):
                    return self.quotient_by(self.evaluate(a), divisor)
                return self._floor_divide(self.evaluate(a), divisor)
            case Mod(a, b):
                value, divisor = self.evaluate(a), self._divisor(atom, b)
                if isinstance(divisor, Linear):
                    return self._modulus_of(value, divisor)
                return self._modulus(value, divisor)
            case Min(a, b):
                return self._extreme(self.evaluate(a), self.evaluate(b), is_min=True)
            case Max(a, b):
                return self._extreme(self.evaluate(a), self.evaluate(b), is_min=False)
            case Element(source, indices):
                return self.element(source, indices)
            case Symbol():
                return self._variable(Var(size_name(atom)))
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

    def _divisor(self, atom: IndexExpr, divisor: Index) -> int | Linear:
        """The divisor as a number if it is one."""
        value = self.evaluate(divisor)
        if value.terms:
            return value
        if value.step or value.const <= 0:
            raise InternalError(
                stage="codegen", where=f"index {atom}", reason="the divisor is not positive"
            )
        return value.const


def size_name(size: Symbol) -> str:
    """The name of a named size in the environment: it has a space, as no loop variable has."""
    return f"size {size}"


def flat_index(buffer: Buffer, indices: tuple[Index, ...]) -> Index:
    """The row-major position of an element, before a swizzle; digits of one number are rejoined."""
    flat = offset_of(buffer, indices)
    is_digit = any(isinstance(atom, Mod) for monomial, _ in terms_of(flat) for atom in monomial)
    return simplify(flat, {}) if is_digit else flat


def _plan(index: Index) -> _Plan:
    const = 0
    variables: list[tuple[str, int]] = []
    others: list[tuple[tuple[IndexExpr, ...], int]] = []
    for monomial, coefficient in terms_of(index):
        if not monomial:
            const = coefficient
        elif len(monomial) == 1 and isinstance(monomial[0], Var):
            variables.append((monomial[0].name, coefficient))
        else:
            others.append((monomial, coefficient))
    return const, tuple(variables), tuple(others)


def _decide(relation: Relation, low: int, high: int) -> bool | None:
    """Whether x <relation> 0 for all x in low..high, or for none; None if for some."""
    if relation is Relation.LT:
        return True if high < 0 else False if low >= 0 else None
    if relation is Relation.LE:
        return True if high <= 0 else False if low > 0 else None
    if low > 0 or high < 0:
        return relation is Relation.NE
    return relation is Relation.EQ if low == high else None
