"""Index expressions and conditions to `Linear`s and masks, in the environment of the loops."""

from __future__ import annotations

from collections.abc import Callable

from tensorwright.base import DType, InternalError, Target
from tensorwright.codegen.llvm.builder import Function
from tensorwright.codegen.llvm.linear import Arithmetic, Linear, combine, scaled, sorted_terms
from tensorwright.codegen.llvm.literals import Val, wrapped_literal
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
    Var,
    simplify,
    terms_of,
    without_division,
)
from tensorwright.loop import Buffer

_PREDICATE = {Relation.LT: "slt", Relation.LE: "sle", Relation.EQ: "eq", Relation.NE: "ne"}

# constant, variables with coefficients, other monomials with coefficients
_Plan = tuple[int, tuple[tuple[str, int], ...], tuple[tuple[tuple[IndexExpr, ...], int], ...]]


class Indices(Arithmetic):
    """Evaluate index expressions; `load_element` reads integer buffers used as indices."""

    def __init__(
        self,
        function: Function,
        target: Target,
        load_element: Callable[[Buffer, tuple[Index, ...]], Linear],
    ) -> None:
        super().__init__(function)
        self.target = target
        self.env: dict[str, int | Linear] = {}
        self.guard: Val | None = None  # where loads and stores may happen, besides padding lanes
        self._load_element = load_element
        self._plans: dict[int, tuple[object, _Plan]] = {}  # by id; keeps the key alive
        self._places: dict[tuple[int, str], tuple[object, _Plan]] = {}

    def evaluate(self, index: Index) -> Linear:
        """The value of an index expression."""
        if isinstance(index, int):
            return Linear(index)
        if isinstance(index, Var):
            return self._variable(index)
        found = self._plans.get(id(index))
        if found is None:
            found = self._plans[id(index)] = (index, _plan(index))
        return self._run(found[1])

    def offset(self, buffer: Buffer, indices: tuple[Index, ...]) -> Linear:
        """The row-major position of an element of a buffer."""
        key = (id(indices), buffer.name)
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = (indices, _plan(flat_index(buffer, indices)))
        return self._run(found[1])

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
            known = self._variable(Var(variable)) if value is None else value
            const += coefficient * known.const
            step += coefficient * known.step
            for name, factor in known.terms:
                terms[name] = terms.get(name, 0) + coefficient * factor
        total = Linear(const, sorted_terms(terms) if terms else (), step)
        for monomial, coefficient in others:
            total = combine(total, self._product(monomial), coefficient)
        return total

    def _variable(self, variable: Var) -> Linear:
        value = self.env.get(variable.name)
        if value is None:
            raise InternalError(
                stage="codegen", where=f"variable {variable}", reason="no loop defines it"
            )
        return Linear(value) if isinstance(value, int) else value

    def _product(self, monomial: tuple[IndexExpr, ...]) -> Linear:
        result = Linear(1)
        for atom in monomial:
            factor = self._atom(atom)
            if not factor.terms and not factor.step:
                result = scaled(result, factor.const)
            elif not result.terms and not result.step:
                result = scaled(factor, result.const)
            else:
                name, varies = self.binary("mul nsw", result, factor)
                result = self.atom(name, self._product_range(result, factor), varies=varies)
        return result

    def _product_range(self, left: Linear, right: Linear) -> tuple[int, int] | None:
        a, b = self.range_of(left), self.range_of(right)
        if a is None or b is None:
            return None
        corners = [x * y for x in a for y in b]
        return min(corners), max(corners)

    def _atom(self, atom: IndexExpr) -> Linear:
        match atom:
            case Var():
                return self._variable(atom)
            case FloorDiv(a, b) | ExactDiv(a, b):
                divisor = self._divisor(atom, b)
                return self.floor_divide(self.evaluate(a), divisor)
            case Mod(a, b):
                return self.modulus(self.evaluate(a), self._divisor(atom, b))
            case Min(a, b):
                return self._extreme(a, b, "smin")
            case Max(a, b):
                return self._extreme(a, b, "smax")
            case Element(source, indices):
                return self._load_element(source, indices)
        return self.evaluate(atom)

    def _divisor(self, atom: IndexExpr, divisor: Index) -> int:
        value = self.evaluate(divisor)
        if value.terms or value.step or value.const <= 0:
            raise InternalError(
                stage="codegen", where=f"index {atom}", reason="the divisor is not a positive int"
            )
        return value.const

    def _extreme(self, a: Index, b: Index, name: str) -> Linear:
        left, right = self.evaluate(a), self.evaluate(b)
        gap = self.range_of(combine(right, left, -1))
        if gap is not None and gap[0] >= 0:
            return left if name == "smin" else right
        if gap is not None and gap[1] <= 0:
            return right if name == "smin" else left
        first, last = self.range_of(left), self.range_of(right)
        choose = min if name == "smin" else max
        bounds = None
        if first is not None and last is not None:
            bounds = (choose(first[0], last[0]), choose(first[1], last[1]))
        uniform = self.is_uniform(left) and self.is_uniform(right)
        kind = "i64" if uniform else f"<{self.lanes} x i64>"
        read = self.scalar if uniform else (lambda value: self.vector_of(value, 64))
        suffix = "i64" if uniform else f"v{self.lanes}i64"
        x, y = read(left), read(right)
        result = self.function.call(f"llvm.{name}.{suffix}", kind, (kind, x), (kind, y))
        return self.atom(result, bounds, varies=not uniform)

    def condition(self, condition: Condition) -> bool | Val:
        """A condition as a bool where it is decided, else as a mask of one or all lanes."""
        match condition:
            case bool():
                return condition
            case Compare(relation, left, right):
                plain = without_division(relation, left, right)
                if not isinstance(plain, Compare):
                    return self.condition(plain)
                gap = combine(self.evaluate(plain.left), self.evaluate(plain.right), -1)
                return self._compared(plain.relation, gap)
            case And(parts):
                return self._joined(parts, "and", absorbing=False)
            case Or(parts):
                return self._joined(parts, "or", absorbing=True)
            case Not(part):
                inner = self.condition(part)
                return not inner if isinstance(inner, bool) else self.inverted(inner)

    def _compared(self, relation: Relation, gap: Linear) -> bool | Val:
        """Whether gap <relation> 0."""
        bounds = self.range_of(gap)
        decided = None if bounds is None else _decide(relation, *bounds)
        if decided is not None:
            return decided
        predicate = _PREDICATE[relation]
        if self.is_uniform(gap):
            moving = self.sum_of(gap.terms)
            name = self.function.pure(f"icmp {predicate} i64 {moving}, {-gap.const}", moving)
            return Val(name, DType.BOOL)
        moving, bits = self.vector(gap)
        name = self.function.pure(
            f"icmp {predicate} <{self.lanes} x i{bits}> {moving}, zeroinitializer", moving
        )
        return Val(name, DType.BOOL, self.lanes)

    def _joined(self, parts: tuple[Condition, ...], operation: str, absorbing: bool) -> bool | Val:
        total: Val | None = None
        for part in parts:
            value = self.condition(part)
            if isinstance(value, bool):
                if value is absorbing:
                    return absorbing
                continue
            total = value if total is None else self.logic(operation, total, value)
        return (not absorbing) if total is None else total

    def logic(self, operation: str, left: Val, right: Val) -> Val:
        """Combine two masks."""
        lanes = max(left.lanes, right.lanes)
        a, b = self.function.splat(left, lanes).name, self.function.splat(right, lanes).name
        kind = "i1" if lanes == 1 else f"<{lanes} x i1>"
        return Val(self.function.pure(f"{operation} {kind} {a}, {b}", a, b), DType.BOOL, lanes)

    def inverted(self, mask: Val) -> Val:
        """The other lanes."""
        return self.logic("xor", mask, Val("true", DType.BOOL))

    def guarded(self, mask: Val) -> Val:
        """The present guard and one more."""
        return mask if self.guard is None else self.logic("and", self.guard, mask)

    def lane_mask(self) -> Val | None:
        """The lanes that are real and pass the guard, or None for all; a vector."""
        lanes = self.lanes
        real: Val | None = None
        if self.active < lanes:
            text = wrapped_literal(range(self.active), lanes)
            real = Val(text, DType.BOOL, lanes)
        if self.guard is None:
            return real
        guard = self.function.splat(self.guard, lanes)
        return guard if real is None else self.logic("and", guard, real)


def flat_index(buffer: Buffer, indices: tuple[Index, ...]) -> Index:
    """The row-major position of an element; digits of one number are joined again."""
    flat: Index = 0
    for index, extent in zip(indices, buffer.shape, strict=True):
        flat = flat * extent + index
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
    """Whether x <relation> 0 for all x in low..high, or for none."""
    if relation is Relation.LT:
        return True if high < 0 else False if low >= 0 else None
    if relation is Relation.LE:
        return True if high <= 0 else False if low > 0 else None
    if low > 0 or high < 0:
        return relation is Relation.NE
    return relation is Relation.EQ if low == high else None
