"""Index expressions and conditions to `Linear`s and masks, in the environment of the loops."""

from __future__ import annotations

from tensorwright.base import CpuTarget, DType
from tensorwright.codegen.analysis.indices import IndexEvaluator, size_name
from tensorwright.codegen.analysis.linear import Linear
from tensorwright.codegen.llvm.memory.arithmetic import Arithmetic
from tensorwright.codegen.llvm.text.builder import Function
from tensorwright.codegen.llvm.text.lanewise import Lanewise
from tensorwright.codegen.llvm.text.literals import Val, wrapped_literal
from tensorwright.expr import IndexExpr, Relation, free_vars, has_element, symbols_of
from tensorwright.machine_code import mangled, vector_type

_PREDICATE = {Relation.LT: "slt", Relation.LE: "sle", Relation.EQ: "eq", Relation.NE: "ne"}


class Indices(Arithmetic, IndexEvaluator[Val]):
    """Evaluate index expressions; `load_element` reads integer buffers used as indices."""

    def __init__(self, function: Function, target: CpuTarget) -> None:
        Arithmetic.__init__(self, function)
        IndexEvaluator.__init__(self)
        self.target = target
        self.lanewise = Lanewise(function, target)
        self.guard: Val | None = None  # where loads and stores may happen, besides padding lanes
        self._names: dict[IndexExpr, tuple[str, ...] | None] = {}
        self._known_atoms: dict[object, Linear] = {}

    def _atom(self, atom: IndexExpr) -> Linear:
        """As in the base; evaluated once for all copies of a statement where it has one value.

        What an atom without loads makes is in the scope of its operands (`Function.pure`), so it
        lives as long as they have these names.
        """
        if atom not in self._names:
            self._names[atom] = None if has_element(atom) else _names_in(atom)
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

    def compared(self, relation: Relation, gap: Linear) -> Val:
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


def _names_in(atom: IndexExpr) -> tuple[str, ...]:
    """The names in the environment of the variables and sizes in an atom."""
    return (*(v.name for v in free_vars(atom)), *(size_name(size) for size in symbols_of(atom)))
