"""Index expressions and conditions to `Linear`s and masks, in the environment of the loops.

Arithmetic of index values in LLVM's text.

The names of a `Linear` are SSA values of type i64; those in `Function.vectors` are of
<lanes x i64>.
"""

from __future__ import annotations

from tensorwright import expr
from tensorwright.base import CpuTarget, DType
from tensorwright.codegen.analysis.indices import (
    IndexEvaluator,
    Linear,
    Terms,
    combine,
    linear_range,
    scaled,
    size_name,
)
from tensorwright.codegen.llvm.text import Function, Lanewise, Val, wrapped_literal
from tensorwright.machine_code import mangled, splat_literal, vector_type

_I32 = 1 << 31


class Arithmetic:
    """Index arithmetic in one function, at a number of lanes that the vector loops set."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.lanes = 1
        self.active = 1  # lanes below this one are real, the others are padding

    def is_uniform(self, value: Linear) -> bool:
        """Whether all lanes have one value."""
        return not value.step and not self.vector_terms(value)

    def vector_terms(self, value: Linear) -> Terms:
        """The terms that differ by lane."""
        vectors = self.function.vectors
        if not vectors:
            return ()
        return tuple(term for term in value.terms if term[0] in vectors)

    def range_of(self, value: Linear, lanes: int = 0) -> tuple[int, int] | None:
        """Inclusive bounds over the real lanes (or over `lanes`), or None."""
        return linear_range(value, lanes or self.active, self.function.ranges)

    def scalar(self, value: Linear) -> str:
        """A uniform value as an i64."""
        total = self.sum_of(value.terms)
        if not total:
            return str(value.const)
        if not value.const:
            return total
        return self.function.pure(f"add nsw i64 {total}, {value.const}", total)

    def outer_first(self, terms: Terms) -> Terms:
        """The terms from the outermost scope to the innermost; in each its loop's index first."""
        if len(terms) < 2:
            return terms
        depth, scopes = self.function.depth, self.function.scopes

        def key(term: tuple[str, int]) -> tuple[int, bool]:
            level = depth.get(term[0], 0)
            return level, scopes[level].index != term[0]

        return tuple(sorted(terms, key=key))

    def sum_of(self, terms: Terms) -> str:
        """The sum of uniform terms as an i64, outer variables first; "" for none."""
        function = self.function
        total = ""
        for name, coefficient in self.outer_first(terms):
            part = name
            if coefficient != 1:
                part = function.pure(f"mul nsw i64 {name}, {coefficient}", name)
            total = function.pure(f"add nsw i64 {total}, {part}", total, part) if total else part
        return total

    def vector(self, value: Linear) -> tuple[str, int]:
        """The value of every lane as a vector, and the bits of its elements: 32 if enough."""
        bounds = self.range_of(value, self.lanes)
        bits = 32 if bounds is not None and bounds[0] >= -_I32 and bounds[1] < _I32 else 64
        return self.vector_of(value, bits), bits

    def vector_of(self, value: Linear, bits: int) -> str:
        """The value of every lane as a vector of elements of `bits` bits (wrapping)."""
        varying = self.vector_terms(value)
        function, lanes, element = self.function, self.lanes, f"i{bits}"
        kind = f"<{lanes} x {element}>"
        total = "<" + ", ".join(f"{element} {value.step * k}" for k in range(lanes)) + ">"
        if not value.step:
            total = ""
        uniform = Linear(value.const, tuple(t for t in value.terms if t not in varying))
        if uniform.terms or uniform.const or not (total or varying):
            base = self.scalar(uniform)
            if bits == 32:
                base = self.narrowed(base, "i64", "i32")
            base = function.splat_name(element, base, lanes)
            total = function.pure(f"add {kind} {base}, {total}", base) if total else base
        for name, coefficient in varying:
            part = name
            if bits == 32:
                part = self.narrowed(name, f"<{lanes} x i64>", kind)
            if coefficient != 1:
                factor = splat_literal(element, str(coefficient), lanes)
                part = function.pure(f"mul {kind} {part}, {factor}", part)
            total = function.pure(f"add {kind} {total}, {part}", total, part) if total else part
        return total

    def narrowed(self, name: str, wide: str, narrow: str) -> str:
        """Truncate an integer; a number stays."""
        if name.lstrip("-").isdigit():
            return name
        return self.function.pure(f"trunc {wide} {name} to {narrow}", name)

    def atom(self, name: str, bounds: tuple[int, int] | None, *, varies: bool) -> Linear:
        """A computed value as a term."""
        if bounds is not None:
            self.function.ranges[name] = bounds
        if varies:
            self.function.vectors.add(name)
        return Linear(0, ((name, 1),))

    def binary(self, operation: str, left: Linear, right: Linear) -> tuple[str, bool]:
        """An i64 operation on two values; the result's name and whether it differs by lane."""
        if self.is_uniform(left) and self.is_uniform(right):
            a, b = self.scalar(left), self.scalar(right)
            return self.function.pure(f"{operation} i64 {a}, {b}", a, b), False
        a, b = self.vector_of(left, 64), self.vector_of(right, 64)
        return self.function.pure(f"{operation} <{self.lanes} x i64> {a}, {b}", a, b), True

    def quotient(self, value: Linear, divisor: int, bounds: tuple[int, int] | None) -> Linear:
        """floor(value / divisor) for a positive divisor."""
        power = divisor.bit_length() - 1
        limits = None if bounds is None else (bounds[0] // divisor, bounds[1] // divisor)
        if divisor == 1 << power:
            name, varies = self.binary("ashr", value, Linear(power))
        elif bounds is not None and bounds[0] >= 0:
            name, varies = self.binary("udiv", value, Linear(divisor))
        else:  # round down: lower a negative dividend by divisor - 1
            sign, varies = self.binary("ashr", value, Linear(63))
            signs = self.atom(sign, (-1, 0), varies=varies)
            low, varies = self.binary("and", signs, Linear(divisor - 1))
            lower = self.atom(low, (0, divisor - 1), varies=varies)
            name, varies = self.binary("sdiv", combine(value, lower, -1), Linear(divisor))
        return self.atom(name, limits, varies=varies)

    def quotient_by(self, value: Linear, divisor: Linear) -> Linear:
        """floor(value / divisor) for a positive divisor that is known when the kernel runs."""
        bounds = self.range_of(value)
        if bounds is not None and bounds[0] >= 0:
            name, varies = self.binary("udiv", value, divisor)
            return self.atom(name, (0, bounds[1]), varies=varies)
        # round down: a negative dividend, less by divisor - 1
        sign, varies = self.binary("ashr", value, Linear(63))
        signs = self.atom(sign, (-1, 0), varies=varies)
        low, varies = self.binary("and", signs, combine(divisor, Linear(-1)))
        name, varies = self.binary(
            "sdiv", combine(value, self.atom(low, None, varies=varies), -1), divisor
        )
        return self.atom(name, bounds, varies=varies)

    def remainder(self, value: Linear, divisor: int, bounds: tuple[int, int] | None) -> Linear:
        """value - divisor * floor(value / divisor) for a positive divisor."""
        if divisor & (divisor - 1) == 0:
            name, varies = self.binary("and", value, Linear(divisor - 1))
        else:
            whole = self.quotient(value, divisor, bounds)
            name, varies = self.binary("sub", value, scaled(whole, divisor))
        return self.atom(name, (0, divisor - 1), varies=varies)


_PREDICATE = {
    expr.Relation.LT: "slt",
    expr.Relation.LE: "sle",
    expr.Relation.EQ: "eq",
    expr.Relation.NE: "ne",
}


class Indices(Arithmetic, IndexEvaluator[Val]):
    """Evaluate index expressions; `load_element` reads integer buffers used as indices."""

    def __init__(self, function: Function, target: CpuTarget) -> None:
        Arithmetic.__init__(self, function)
        IndexEvaluator.__init__(self)
        self.target = target
        self.lanewise = Lanewise(function, target)
        self.guard: Val | None = None  # where loads and stores may happen, besides padding lanes
        self._names: dict[expr.IndexExpr, tuple[str, ...] | None] = {}
        self._known_atoms: dict[object, Linear] = {}

    def _atom(self, atom: expr.IndexExpr) -> Linear:
        """As in the base; evaluated once for all copies of a statement where it has one value.

        What an atom without loads makes is in the scope of its operands (`Function.pure`), so it
        lives as long as they have these names.
        """
        if atom not in self._names:
            self._names[atom] = None if expr.has_element(atom) else _names_in(atom)
        names = self._names[atom]
        if names is None:
            return super()._atom(atom)
        key = atom, self.lanes, self.active, tuple([self.env.get(name) for name in names])
        value = self._known_atoms.get(key)
        if value is None:
            value = self._known_atoms[key] = super()._atom(atom)
        return value

    def product(self, left: Linear, right: Linear) -> Linear:
        """left * right."""
        name, varies = self.binary("mul nsw", left, right)
        return self.atom(name, self._product_range(left, right), varies=varies)

    def _product_range(self, left: Linear, right: Linear) -> tuple[int, int] | None:
        a, b = self.range_of(left), self.range_of(right)
        if a is None or b is None:
            return None
        corners = [x * y for x in a for y in b]
        return min(corners), max(corners)

    def extreme(
        self, left: Linear, right: Linear, bounds: tuple[int, int] | None, *, is_min: bool
    ) -> Linear:
        """The smaller or the larger of two values."""
        is_uniform = self.is_uniform(left) and self.is_uniform(right)
        lanes = 1 if is_uniform else self.lanes
        kind = vector_type("i64", lanes)
        operands = (self.scalar(v) if is_uniform else self.vector_of(v, 64) for v in (left, right))
        name = f"llvm.{'smin' if is_min else 'smax'}.{mangled('i64', lanes)}"
        result = self.function.call(name, kind, *((kind, operand) for operand in operands))
        return self.atom(result, bounds, varies=not is_uniform)

    def compared(self, relation: expr.Relation, gap: Linear) -> Val:
        """Whether gap <relation> 0, in one lane or in all."""
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

    def joined(self, left: Val, right: Val, *, is_and: bool) -> Val:
        """Whether both hold, or one of them, lane by lane."""
        return self.logic("and" if is_and else "or", left, right)

    def logic(self, operation: str, left: Val, right: Val) -> Val:
        """Combine two masks."""
        lanes = max(left.lanes, right.lanes)
        a, b = (self.function.splat(mask, lanes) for mask in (left, right))
        return self.lanewise.binary(operation, a, b)

    def inverted(self, mask: Val) -> Val:
        """The other lanes."""
        return self.logic("xor", mask, Val("true", DType.BOOL))

    def guarded(self, mask: Val) -> Val:
        """The current guard and one more."""
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


def _names_in(atom: expr.IndexExpr) -> tuple[str, ...]:
    """The names in the environment of the variables and sizes in an atom."""
    return (
        *(v.name for v in expr.free_vars(atom)),
        *(size_name(size) for size in expr.symbols_of(atom)),
    )
