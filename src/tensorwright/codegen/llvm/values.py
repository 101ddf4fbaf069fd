"""Value expressions to values in registers."""

from __future__ import annotations

from tensorwright import expr
from tensorwright.base import CpuTarget, DType, InternalError
from tensorwright.codegen.analysis.indices import Linear
from tensorwright.codegen.llvm.buffers import Memory, Slots
from tensorwright.codegen.llvm.codes import Code, code_of, reciprocal
from tensorwright.codegen.llvm.operations import Operations, constant_power
from tensorwright.codegen.llvm.tables import Table, table_of
from tensorwright.codegen.llvm.text import (
    Function,
    Val,
    literal_text,
    register_type,
    scalar_literal,
)


class Values(Memory):
    """Evaluate value expressions; operands shared within one statement are computed once."""

    def __init__(self, function: Function, target: CpuTarget) -> None:
        super().__init__(function, target)
        self.operations = Operations(function, target)
        self._shared: dict[int, Val] = {}
        self._tables: dict[int, tuple[expr.Value, Table | None]] = {}

    def value(self, value: expr.Value) -> Val:
        """The value of an expression, for one statement."""
        self._shared = {}
        return self._value(value)

    def _value(self, value: expr.Value) -> Val:
        match value:
            case expr.Load(source, indices):
                return self.load(source, indices)
            case expr.Const(number, dtype):
                return Val(literal_text(number, dtype), dtype)
        result = self._shared.get(id(value))
        if result is None:
            result = self._shared[id(value)] = self._computed(value)
        return result

    def _computed(self, value: expr.Value) -> Val:
        match value:
            case expr.Apply(fn, args):
                code = code_of(value) if fn is expr.Fn.MIN else None
                entry = code and self._entry(value, code)
                return (
                    self.operations.convert(entry, DType.F32) if entry else self._applied(fn, args)
                )
            case expr.Cast(operand, dtype):
                if DType.F16 in (operand.dtype, dtype):
                    self.require_half()
                code = code_of(operand) if dtype.is_int else None
                if code is not None and dtype.lowest <= code.low <= code.high <= dtype.highest:
                    entry = self._entry(operand, code)
                    return self.operations.convert(entry or self._coded(code), dtype)
                return self.operations.convert(self._value(operand), dtype)
            case expr.FromIndex(index, dtype):
                return self._from_index(index, dtype)
            case expr.Select():
                return self._selected(value)
        raise InternalError(stage="codegen", where=f"value {value}", reason="not a value")

    def _applied(self, fn: expr.Fn, args: tuple[expr.Value, ...]) -> Val:
        if (
            self.target.fma
            and fn in (expr.Fn.ADD, expr.Fn.SUB)
            and args[0].dtype in (DType.F32, DType.F64)
        ):
            fused = self._contracted(fn, *args)
            if fused is not None:
                return fused
        if fn is expr.Fn.POW and isinstance(args[1], expr.Const):
            power = constant_power(self.operations, self._value(args[0]), float(args[1].value))
            if power is not None:
                return power
        if fn is expr.Fn.ROUND:
            return self.operations.apply(fn, (self._quotient(args[0]),))
        return self.operations.apply(fn, tuple(self._value(arg) for arg in args))

    def _quotient(self, value: expr.Value) -> Val:
        """A value that is rounded to a whole number: by multiplications if it is a quotient."""
        match value:
            case expr.Apply(expr.Fn.DIV, (number, expr.Const(divisor, DType.F32))):
                factors = reciprocal(float(divisor)) if self.target.fma else None
            case _:
                factors = None
        if factors is None:
            return self._value(value)
        x = self._value(number)
        high, low = (self.operations.constant(each, x) for each in factors)
        if not factors[1]:
            return self.operations.apply(expr.Fn.MUL, (x, high))
        return self.operations.fused(x, high, self.operations.apply(expr.Fn.MUL, (x, low)))

    def _coded(self, code: Code) -> Val:
        """A code as an i32: its conversion rounds. NaN gives 0, as where floats are converted."""
        operations, number = self.operations, self._quotient(code.number)
        least, most = (
            operations.constant(float(end - code.zero), number) for end in (code.low, code.high)
        )
        inside = operations.choose(operations.test("ogt", number, least), number, least)
        inside = operations.choose(operations.test("olt", inside, most), inside, most)
        whole = operations.nearest(inside)
        if code.low:
            none = operations.constant(-code.zero, whole)
            whole = operations.choose(operations.test("ord", number, number), whole, none)
        if not code.zero:
            return whole
        return operations.binary("add", whole, operations.constant(code.zero, whole))

    def _entry(self, value: expr.Value, code: Code) -> Val | None:
        """A code as an entry of a table, a byte or a sum of one and a number; None without a table
        that the target reads in registers.
        """
        if self.lanes not in _TABLE_LANES or "avx512vbmi" not in self.target.instructions:
            return None
        if id(value) not in self._tables:
            self._tables[id(value)] = value, table_of(value, code)
        _, table = self._tables[id(value)]
        if table is None:
            return None
        operations = self.operations
        if table.code is None:
            index = self._value(table.source)
        else:
            index = self._coded(table.code.from_zero())
        index = self.function.splat(operations.convert(index, DType.U8), self.lanes)
        entry = operations.entry(table.entries, index)._replace(dtype=table.dtype)
        if not table.least:
            return entry
        wide = operations.convert(entry, DType.I32)
        return operations.binary("add", wide, operations.constant(table.least, wide))

    def _contracted(self, fn: expr.Fn, left: expr.Value, right: expr.Value) -> Val | None:
        """left + right or left - right where one of them is a product: one rounding."""
        operations = self.operations
        if (
            isinstance(right, expr.Apply)
            and right.fn is expr.Fn.MUL
            and id(right) not in self._shared
        ):
            addend = self._value(left)
            a, b = (self._value(arg) for arg in right.args)
            if fn is expr.Fn.SUB:
                a = operations.apply(expr.Fn.NEG, (a,))
            return self._in_place(left, (a, b), operations.fused(a, b, addend))
        if isinstance(left, expr.Apply) and left.fn is expr.Fn.MUL and id(left) not in self._shared:
            a, b = (self._value(arg) for arg in left.args)
            addend = self._value(right)
            if fn is expr.Fn.SUB:
                addend = operations.apply(expr.Fn.NEG, (addend,))
            return self._in_place(right, (a, b), operations.fused(a, b, addend))
        return None

    def _in_place(self, addend: expr.Value, factors: tuple[Val, Val], result: Val) -> Val:
        """Keep a sum of a register tile in its register, where loads spread the factors.

        LLVM gives a multiply-add the register of an operand that is not used afterwards: that of
        the spread factor, not that of the sum. The sums then move from register to register, and
        those of a tile that fills the registers are spilled. An empty inline assembly uses the
        factor once more afterwards, so LLVM takes the sum's register. It also keeps the order of
        the multiply-adds.
        """
        size_bytes = result.lanes * result.dtype.size_bytes
        is_register = size_bytes in (_SMALLEST_REGISTER, self.target.vector_bytes)
        if self.target.spreads_operands or not is_register or not self._is_in_tile(addend):
            return result
        kind = register_type(result.dtype, result.lanes)
        for factor in factors:
            if factor.lanes == 1 and scalar_literal(factor) is None:
                spread = self.function.splat(factor, result.lanes).name
                operands = f"{kind} {spread}, {kind} {result.name}"
                self.function.effect(f'call void asm sideeffect "", "x,x"({operands})')
        return result

    def _is_in_tile(self, value: expr.Value) -> bool:
        return isinstance(value, expr.Load) and isinstance(
            self.storages.get(value.source.name), Slots
        )

    def _from_index(self, index: expr.Index, dtype: DType) -> Val:
        linear = self.evaluate(index)
        if not linear.terms and not linear.step:
            return Val(literal_text(linear.const, dtype), dtype)
        return self.operations.convert(self._index_value(linear), dtype)

    def _index_value(self, linear: Linear) -> Val:
        if self.is_uniform(linear):
            return Val(self.scalar(linear), DType.I64)
        name, bits = self.vector(linear)
        return Val(name, DType.I32 if bits == 32 else DType.I64, self.lanes)

    def _selected(self, value: expr.Select) -> Val:
        """Decide, or compute both sides, each guarded by its side of an index condition."""
        condition = value.condition
        if isinstance(condition, expr.ValueExpr):
            mask = self._value(condition)
            return self.chosen(mask, self._value(value.then), self._value(value.otherwise))
        decided = self.condition(condition)
        if isinstance(decided, bool):
            return self._value(value.then if decided else value.otherwise)
        if decided.lanes == 1 and self._is_worth_a_branch(value):
            return self._branched(decided, value.then, value.otherwise)
        if decided.lanes == 1 and isinstance(value.then, expr.Load):
            chosen = self._load_or(decided, value.then, value.otherwise)
            if chosen is not None:
                return chosen
        then = self._under(decided, value.then)
        otherwise = value.otherwise
        if isinstance(otherwise, expr.Const):
            return self.chosen(decided, then, self._value(otherwise))
        rest = self._under(self.inverted(decided), otherwise)
        return self.chosen(decided, then, rest)

    def _is_worth_a_branch(self, value: expr.Select) -> bool:
        """Whether to evaluate one side alone: both are expensive, or are vectors from memory.

        The vector of the other side may lie on a page that is not mapped: a masked load without
        lanes then takes hundreds of cycles.
        """
        sides = (value.then, value.otherwise)
        reads = all(
            any(isinstance(x, expr.Load) for x in expr.values_below(side)) for side in sides
        )
        return any(map(is_heavy, sides)) or (self.lanes > 1 and reads)

    def _load_or(self, condition: Val, load: expr.Load, otherwise: expr.Value) -> Val | None:
        """A load, or a constant if the condition fails; None if no masked load does this."""
        if not isinstance(otherwise, expr.Const) or load.dtype not in _PLAIN_IN_MEMORY:
            return None
        if not self.target.has_masks:
            return None
        constant = Val(literal_text(otherwise.value, otherwise.type), otherwise.type)
        return self.load_or(load.source, load.indices, condition, constant)

    def _under(self, mask: Val, value: expr.Value) -> Val:
        """Evaluate with a guard on the loads."""
        kept_guard, kept_shared = self.guard, self._shared
        self.guard, self._shared = self.guarded(mask), {}
        result = self._value(value)
        self.guard, self._shared = kept_guard, kept_shared
        return result

    def _branched(self, condition: Val, then: expr.Value, otherwise: expr.Value) -> Val:
        """Evaluate one side only; the result goes through a stack slot that LLVM promotes."""
        function, lanes = self.function, self.lanes
        kind = register_type(then.dtype, lanes)
        slot = function.alloca(kind, 64)
        for mask, side in ((condition, then), (self.inverted(condition), otherwise)):
            kept = self._shared
            self._shared = {}
            with function.branch(mask.name, frozenset()):
                result = function.splat(self._value(side), lanes)
                function.effect(f"store {kind} {result.name}, ptr {slot}, align 64")
            self._shared = kept
        return Val(function.emit(f"load {kind}, ptr {slot}, align 64"), then.dtype, lanes)


_TABLE_LANES = (16, 32, 64)
_SMALLEST_REGISTER = 16  # bytes
_PLAIN_IN_MEMORY = (DType.F32, DType.F64, DType.I32, DType.I64)  # as in registers
_CHEAP = frozenset(
    (
        *(
            expr.Fn.ADD,
            expr.Fn.SUB,
            expr.Fn.MUL,
            expr.Fn.MIN,
            expr.Fn.MAX,
            expr.Fn.NEG,
            expr.Fn.ABS,
        ),
        *(expr.Fn.LT, expr.Fn.LE, expr.Fn.EQ, expr.Fn.NE, expr.Fn.AND, expr.Fn.OR, expr.Fn.NOT),
    )
)
_BRANCH_COST = 6  # in cheap operations


def is_heavy(value: expr.Value) -> bool:
    """Whether computing a value needlessly costs more than a branch."""
    return sum(_own_cost(part) for part in expr.values_below(value)) > _BRANCH_COST


def _own_cost(value: expr.Value) -> int:
    match value:
        case expr.Apply(fn, _):
            return 1 if fn in _CHEAP else 8
        case expr.Load():
            return 2
        case expr.Select() | expr.Cast():
            return 1
        case _:
            return 0
