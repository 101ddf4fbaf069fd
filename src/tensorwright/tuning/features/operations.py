"""Operations and accesses of one statement: how many of each kind an execution takes."""

from __future__ import annotations

from dataclasses import dataclass, field

from tensorwright.expr import Apply, Cast, Fn, Index, Load, Select, Value, ValueExpr, children
from tensorwright.loop import Buffer
from tensorwright.tuning.features.columns import Cell
from tensorwright.tuning.features.loop_dependence import Variables
from tensorwright.tuning.features.statements import Statement

_ADD = frozenset((Fn.ADD, Fn.SUB))
_CLASSES = {
    Fn.ADD: "addsub",
    Fn.SUB: "addsub",
    Fn.MUL: "mul",
    Fn.DIV: "divmod",
    Fn.MOD: "divmod",
    Fn.FLOORMOD: "divmod",
    **dict.fromkeys((Fn.MIN, Fn.MAX, Fn.LT, Fn.LE, Fn.EQ, Fn.NE), "cmp"),
    **dict.fromkeys((Fn.NEG, Fn.ABS, Fn.SIGN, Fn.FLOOR, Fn.CEIL, Fn.ROUND), "otherfunc"),
    **dict.fromkeys((Fn.TRUNC, Fn.ISNAN, Fn.ISINF), "otherfunc"),
    **dict.fromkeys((Fn.BITAND, Fn.BITOR, Fn.BITXOR, Fn.BITNOT, Fn.SHL, Fn.SHR), "otherfunc"),
}
_LOGIC = frozenset((Fn.AND, Fn.OR, Fn.XOR, Fn.NOT))


@dataclass(frozen=True, slots=True)
class Access:
    """A load or a store of one element; `weight` is 0 if it is never executed."""

    buffer: Buffer
    indices: tuple[Index, ...]
    is_store: bool
    weight: Cell


@dataclass(slots=True)
class Operations:
    """How often each operation is executed when the statement runs once; grows while counting."""

    counts: dict[str, Cell] = field(default_factory=dict)
    accesses: list[Access] = field(default_factory=list)

    def add(self, name: str, weight: Cell) -> None:
        """Count one more operation."""
        self.counts[name] = self.counts.get(name, 0) + weight


def operations_of(statement: Statement, variables: Variables) -> Operations:
    """Count the operations of a statement's value and guards, and list its accesses.

    Comparisons decided for all iterations and branches never taken do not count.
    """
    operations = Operations()
    store = statement.store
    operations.accesses.append(Access(store.buffer, store.indices, is_store=True, weight=1))
    for guard in statement.guards:
        count = variables.condition_bounds(guard).open_count
        operations.add("int_cmp", count)
        operations.add("bool_op", count)
    _count(store.value, 1, variables, operations)
    return operations


def _count(value: Value, weight: Cell, variables: Variables, operations: Operations) -> None:
    match value:
        case Load(source, indices):
            access = Access(source, indices, is_store=False, weight=weight)
            if access not in operations.accesses:
                operations.accesses.append(access)
            return
        case Select(condition, then, otherwise) if not isinstance(condition, ValueExpr):
            bounds = variables.condition_bounds(condition)
            operations.add("int_cmp", weight * bounds.open_count)
            operations.add("select_op", weight * (1 - bounds.always - bounds.never))
            _count(then, weight * (1 - bounds.never), variables, operations)
            _count(otherwise, weight * (1 - bounds.always), variables, operations)
            return
        case Select():
            operations.add("select_op", weight)
        case Apply(fn, args) if fn in _ADD and (product := _product(args)) is not None:
            operations.add(f"{_sort(args[0])}_mad", weight)
            for part in (*(arg for arg in args if arg is not product), *product.args):
                _count(part, weight, variables, operations)
            return
        case Apply(fn, args):
            name = "bool_op" if fn in _LOGIC else f"{_sort(args[0])}_{_CLASSES.get(fn, 'mathfunc')}"
            operations.add(name, weight)
        case Cast(operand, _):
            operations.add(f"{_sort(operand)}_otherfunc", weight)
        case _:
            pass
    for child in children(value):
        _count(child, weight, variables, operations)


def _product(args: tuple[Value, ...]) -> Apply | None:
    """A product among the operands, which is fused with the addition: one multiply-add."""
    return next((arg for arg in args if isinstance(arg, Apply) and arg.fn is Fn.MUL), None)


def _sort(value: Value) -> str:
    return "float" if value.dtype.is_float else "int"
