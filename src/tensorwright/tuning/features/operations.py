"""Operations and accesses of one statement: how many of each kind an execution takes.

The names of the features of one statement; `groups.py` makes the columns.

The statements of a loop program, each with the loops, guards and buffers around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tensorwright import expr, loop
from tensorwright.base import DType, ShortProduct, Speeds, short_product
from tensorwright.schedule import ForKind
from tensorwright.tuning.features.columns import Cell
from tensorwright.tuning.features.loop_dependence import Variables

BUFFERS = 5  # the buffers of a statement that have columns
CURVE_POINTS = 10
REGISTER_BYTES = (512, 2048)
CACHE_BYTES = tuple(2**15 * 4**n for n in range(6))
"""Sizes of caches, 32 KiB to 32 MiB, for the features of data from beyond them."""

OPERATION_CLASSES = ("mad", "addsub", "mul", "divmod", "cmp", "mathfunc", "otherfunc")
POSITIONS = (
    "none",
    "inner_spatial",
    "middle_spatial",
    "outer_spatial",
    "inner_reduce",
    "middle_reduce",
    "outer_reduce",
    "mixed",
)
ANNOTATION_FIELDS = ("num", "prod", "len", *(f"type_{position}" for position in POSITIONS))
GPU_KINDS = (*(f"{kind}_{axis}" for kind in ("block", "thread") for axis in "xyz"), "vthread")
BUFFER_FIELDS = (
    "read",
    "write",
    "read_write",
    "bytes",
    "unique_bytes",
    "lines",
    "unique_lines",
    "reuse_loop",
    "reuse_serial",
    "reuse_none",
    "reuse_distance_iterations",
    "reuse_distance_bytes",
    "reuse_count",
    "bytes_per_reuse",
    "unique_bytes_per_reuse",
    "lines_per_reuse",
    "unique_lines_per_reuse",
    "stride",
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A store and what is around it, outermost first.

    lives  the buffers that are allocated around it, each with the number of loops outside of that
    path   to it from the program's body: two statements share the loops on the common part of
           their paths
    """

    store: loop.Store
    loops: tuple[loop.For, ...]
    guards: tuple[expr.Condition, ...]
    lives: tuple[tuple[loop.Buffer, int], ...]
    path: tuple[int, ...]
    loop_steps: tuple[int, ...]  # the length of the path at which each loop begins
    is_copy: bool = False  # started here, awaited later
    speed: float = 1.0  # runs in the time of one multiply-add in a vector of f32

    def outside(self, buffer: loop.Buffer) -> int:
        """The number of loops outside of the life of a buffer: 0 for one of the caller's."""
        return dict(self.lives).get(buffer, 0)

    @property
    def is_update(self) -> bool:
        """Whether it reads the element that it stores."""
        element = expr.Load(self.store.buffer, self.store.indices)
        return any(load == element for load in expr.loads_of(self.store.value))

    def shared_loops(self, other: Statement) -> int:
        """The number of loops around both statements."""
        common = 0
        for mine, theirs in zip(self.path, other.path, strict=False):
            if mine != theirs:
                break
            common += 1
        return sum(step <= common for step in self.loop_steps)


def statements_of(program: loop.LoopProgram, speeds: Speeds = ()) -> tuple[Statement, ...]:
    """The stores of a program, in order; those that an intrinsic stands for too.

    speeds   of intrinsics, where they are others than those of their records
    """
    calls = (each for each in loop.walk(program.body) if isinstance(each, loop.Call))
    summed = frozenset(call.windows[0].buffer for call in calls)
    return tuple(_walk(program.body, _Around(summed=summed, speeds=speeds)))


@dataclass(frozen=True, slots=True)
class _Around:
    loops: tuple[loop.For, ...] = ()
    guards: tuple[expr.Condition, ...] = ()
    lives: tuple[tuple[loop.Buffer, int], ...] = ()
    path: tuple[int, ...] = ()
    loop_steps: tuple[int, ...] = ()
    speed: float = 1.0
    summed: frozenset[loop.Buffer] = frozenset()  # by instructions
    speeds: Speeds = ()


def _walk(statement: loop.Stmt, around: _Around) -> Iterator[Statement]:
    loops, path, steps = around.loops, around.path, around.loop_steps
    match statement:
        case loop.Block(parts):
            for n, part in enumerate(parts):
                yield from _walk(part, replace(around, path=(*path, n)))
        case loop.For(_, _, _, loop.Store() as store) if store.buffer in around.summed:
            lanes = replace(statement, kind=ForKind.VECTOR)  # sums begin as whole registers
            yield _statement(
                store, replace(around, loops=(*loops, lanes), loop_steps=(*steps, len(path)))
            )
        case loop.For(_, _, _, body):
            inner = replace(around, loops=(*loops, statement), loop_steps=(*steps, len(path)))
            yield from _walk(body, inner)
        case loop.If(condition, then):
            yield from _walk(then, replace(around, guards=(*around.guards, condition)))
        case loop.Allocate(buffer, body):
            lives = (*around.lives, (buffer, len(loops)))
            yield from _walk(body, replace(around, lives=lives))
        case loop.Call(intrinsic, _, meaning):
            product = short_product(intrinsic)
            if product is None:
                yield from _walk(meaning, around)
                return
            speed = dict(around.speeds).get(intrinsic, product.speed)
            inner = replace(around, speed=speed / product.terms)
            yield from _walk(_in_vectors(meaning, product), inner)
        case loop.Store():
            yield _statement(statement, around)
        case loop.StartCopy(store):
            yield replace(_statement(store, around), is_copy=True)
        case loop.Prefetch() | loop.GroupStatement():
            return


def _statement(store: loop.Store, around: _Around) -> Statement:
    return Statement(
        store,
        around.loops,
        around.guards,
        around.lives,
        around.path,
        around.loop_steps,
        speed=around.speed,
    )


def _in_vectors(meaning: loop.Stmt, product: ShortProduct) -> loop.Stmt:
    """An instruction as if each of its groups of terms were one number: its columns are lanes."""

    def marked(statement: loop.Stmt, outside: int) -> loop.Stmt:
        if not isinstance(statement, loop.For):
            return statement
        if not isinstance(statement.body, loop.For):
            return _with_groups(statement, product.terms)
        kind = ForKind.UNROLLED if outside else ForKind.VECTOR
        return replace(statement, kind=kind, body=marked(statement.body, outside - 1))

    return marked(meaning, int(product.rows > 1) + int(product.is_matrix))


def _with_groups(terms: loop.For, count: int) -> loop.Stmt:
    """The body of the loop over the terms of a group, which lie side by side, for all at once."""

    def on_load(load: expr.Load) -> expr.Value:
        if terms.var not in expr.free_vars(*load.indices):
            return load
        *outer, last = (expr.substitute(index, {terms.var: 0}) for index in load.indices)
        *shape, extent = load.source.shape
        groups = loop.Buffer(
            load.source.name,
            (*shape, expr.floor_div(extent, count)),
            _WIDE[load.dtype],
            load.source.scope,
        )
        return expr.Load(groups, (*outer, expr.floor_div(last, count)))

    def on_statement(statement: loop.Stmt) -> loop.Stmt:
        match statement:
            case loop.If(condition, then):
                return loop.If(condition, on_statement(then))
            case loop.Store(buffer, indices, value):
                return loop.Store(buffer, indices, expr.map_loads(value, on_load))
        return statement

    return loop.substitute_statement(on_statement(terms.body), {terms.var: 0})


_WIDE = {DType.BF16: DType.F32, **dict.fromkeys((DType.U8, DType.I8, DType.I16), DType.I32)}
"""Of the groups of short numbers."""


_ADD = frozenset((expr.Fn.ADD, expr.Fn.SUB))
_CLASSES = {
    expr.Fn.ADD: "addsub",
    expr.Fn.SUB: "addsub",
    expr.Fn.MUL: "mul",
    expr.Fn.DIV: "divmod",
    expr.Fn.MOD: "divmod",
    expr.Fn.FLOORMOD: "divmod",
    **dict.fromkeys(
        (expr.Fn.MIN, expr.Fn.MAX, expr.Fn.LT, expr.Fn.LE, expr.Fn.EQ, expr.Fn.NE), "cmp"
    ),
    **dict.fromkeys(
        (expr.Fn.NEG, expr.Fn.ABS, expr.Fn.SIGN, expr.Fn.FLOOR, expr.Fn.CEIL, expr.Fn.ROUND),
        "otherfunc",
    ),
    **dict.fromkeys((expr.Fn.TRUNC, expr.Fn.ISNAN, expr.Fn.ISINF), "otherfunc"),
    **dict.fromkeys(
        (expr.Fn.BITAND, expr.Fn.BITOR, expr.Fn.BITXOR, expr.Fn.BITNOT, expr.Fn.SHL, expr.Fn.SHR),
        "otherfunc",
    ),
}
_LOGIC = frozenset((expr.Fn.AND, expr.Fn.OR, expr.Fn.XOR, expr.Fn.NOT))


@dataclass(frozen=True, slots=True)
class Access:
    """A load or a store of one element; `weight` is 0 if it is never executed."""

    buffer: loop.Buffer
    indices: tuple[expr.Index, ...]
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
    if statement.speed != 1.0:
        products = [operations.counts.pop(name, 0) for name in ("float_mad", "int_mad")]
        operations.counts["float_mad"] = sum(products) * (1.0 / statement.speed)
    return operations


def _count(value: expr.Value, weight: Cell, variables: Variables, operations: Operations) -> None:
    match value:
        case expr.Load(source, indices):
            access = Access(source, indices, is_store=False, weight=weight)
            if access not in operations.accesses:
                operations.accesses.append(access)
            return
        case expr.Select(condition, then, otherwise) if not isinstance(condition, expr.ValueExpr):
            bounds = variables.condition_bounds(condition)
            operations.add("int_cmp", weight * bounds.open_count)
            operations.add("select_op", weight * (1 - bounds.always - bounds.never))
            _count(then, weight * (1 - bounds.never), variables, operations)
            _count(otherwise, weight * (1 - bounds.always), variables, operations)
            return
        case expr.Select():
            operations.add("select_op", weight)
        case expr.Apply(fn, args) if fn in _ADD and (product := _product(args)) is not None:
            operations.add(f"{_sort(args[0])}_mad", weight)
            for part in (*(arg for arg in args if arg is not product), *product.args):
                _count(part, weight, variables, operations)
            return
        case expr.Apply(fn, args):
            name = "bool_op" if fn in _LOGIC else f"{_sort(args[0])}_{_CLASSES.get(fn, 'mathfunc')}"
            operations.add(name, weight)
        case expr.Cast(operand, dtype) if operand.dtype not in (DType.BF16, dtype):
            # loads widen bf16
            operations.add(f"{_sort(operand)}_otherfunc", weight)
        case _:
            pass
    for child in expr.children(value):
        _count(child, weight, variables, operations)


def _product(args: tuple[expr.Value, ...]) -> expr.Apply | None:
    """A product among the operands, which is fused with the addition: one multiply-add."""
    return next(
        (arg for arg in args if isinstance(arg, expr.Apply) and arg.fn is expr.Fn.MUL), None
    )


def _sort(value: expr.Value) -> str:
    return "float" if value.dtype.is_float else "int"
