"""Parallel loops: the body as a function of its own, shared out by the names of libgomp's ABI.

    NAME.parN.body(captured..., workspace, slice, first, stop)   runs iterations first..stop-1
    NAME.parN(context)                                          what GOMP_parallel calls

Each piece is contiguous; pieces must not wait for each other, since one thread may run several of
them in turn. One thread alone calls the body directly.

Named sizes as a kernel gets them, and expressions of them in native functions.

Hardware instructions that a schedule may call by name; adding one is one record in the tuple.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from tensorwright import base, machine_code
from tensorwright.codegen.analysis.indices import Linear
from tensorwright.codegen.llvm.access import Piece
from tensorwright.codegen.llvm.buffers import Slots
from tensorwright.codegen.llvm.text import Function, register_type
from tensorwright.expr import Arithmetic, Index, NamedSize, value_of_node
from tensorwright.loop import Stmt, buffers_used


def number_of(
    function: machine_code.NativeFunction,
    index: Index,
    sizes: Mapping[NamedSize, machine_code.Number],
) -> machine_code.Number:
    """The value of an expression of named sizes."""

    def total(parts: Iterable[machine_code.Number]) -> machine_code.Number:
        return sum(parts, start=function.number(0))

    def divided(dividend: machine_code.Number, divisor: machine_code.Number) -> machine_code.Number:
        """Rounded down."""
        given = function.number(dividend)
        lower = given - divisor + 1
        return given.test("slt", 0).choose(lower, given).apply("sdiv", divisor)

    over: Arithmetic[machine_code.Number] = Arithmetic(
        total,
        divided,
        divided,
        lambda dividend, divisor: dividend - divided(dividend, divisor) * divisor,
        lambda left, right: function.number(left).smaller(right),
        lambda left, right: function.number(left).larger(right),
    )

    def value(part: Index) -> machine_code.Number:
        if isinstance(part, int):
            return function.number(part)
        return sizes[part] if isinstance(part, NamedSize) else value_of_node(part, value, over)

    return value(index)


@dataclass(frozen=True, slots=True)
class Region:
    """A parallel loop; `captured` are the (type and attributes, name) that its body needs."""

    name: str
    captured: tuple[tuple[str, str], ...]

    def body_head(self) -> str:
        """The head of the body's function."""
        own = ["ptr %workspace", "ptr %slice", "i64 %first", "i64 %stop"]
        listed = ", ".join([f"{kind} {name}" for kind, name in self.captured] + own)
        return f"define internal void @{self.name}.body({listed}) nounwind"

    @property
    def context(self) -> tuple[tuple[str, str], ...]:
        """The (type, name) of all arguments of the body's calls; the slices of all threads last."""
        captured = ((kind.split()[0], name) for kind, name in self.captured)
        return (*captured, ("ptr", "%workspace"), ("ptr", "%slice"))


def capture(
    body: Stmt, env: Mapping[str, int | Linear], storages: Mapping[str, Piece | Slots]
) -> tuple[tuple[str, str], ...]:
    """The buffers and index values from outside that a body needs, in a fixed order."""
    pointers: dict[str, str] = {}
    for name in sorted(buffer.name for buffer in buffers_used(body)):
        storage = storages.get(name)
        if isinstance(storage, Piece):
            pointers[storage.pointer] = f"ptr noalias align {storage.align}"
    values = [value for _, value in sorted(env.items()) if isinstance(value, Linear)]
    numbers = {name: "i64" for value in values for name, _ in value.terms}
    return tuple((kind, name) for name, kind in {**pointers, **numbers}.items())


def write_region(function: Function, region: Region, extent: str) -> None:
    """Write a parallel loop: one thread calls the body, more go by GOMP_parallel.

    extent   its number of iterations, an i64; the threads find it at the end of their context
    """
    context = function.alloca(f"[{len(region.context) + 1} x i64]", 8)
    multi = function.emit("icmp sgt i32 %threads, 1")
    with function.branch_on(multi) as alone:
        for position, (kind, name) in enumerate((*region.context, ("i64", extent))):
            slot = function.emit(f"getelementptr i64, ptr {context}, i64 {position}")
            function.effect(f"store {kind} {name}, ptr {slot}")
        threads = function.emit("sext i32 %threads to i64")
        count = function.call("llvm.smin.i64", "i64", ("i64", threads), ("i64", extent))
        count = function.emit(f"trunc i64 {count} to i32")
        arguments = (("ptr", f"@{region.name}"), ("ptr", context), ("i32", count), ("i32", "0"))
        function.effect(function.call_text("void", "GOMP_parallel", *arguments))
    with alone():
        listed = ", ".join(f"{kind} {name}" for kind, name in region.context)
        body = f"@{region.name}.body({listed}, i64 0, i64 {extent})"
        function.effect(f"call void {body}")


def write_entry(
    module: machine_code.Module, region: Region, slice_bytes: Index, sizes: Mapping[NamedSize, str]
) -> None:
    """Write what each thread runs: unpack the context, find its piece, call the body.

    sizes   the names of the named sizes, which each region captures
    """
    entry = machine_code.NativeFunction(
        module, region.name, (machine_code.Kind.POINTER,), is_internal=True
    )
    words = entry.parameters[0].array(machine_code.Kind.I64)
    fields = [words.address(n).array(kind)[0] for n, (kind, _) in enumerate(region.context)]
    extent = words[len(fields)]
    field_of = {name: field for (_, name), field in zip(region.context, fields, strict=True)}
    numbers_of = {size: field_of[name] for size, name in sizes.items()}
    numbers = (
        entry.call(machine_code.Kind.I32, "omp_get_thread_num"),
        entry.call(machine_code.Kind.I32, "omp_get_num_threads"),
    )
    thread, count = (number.cast("zext", machine_code.Kind.I64) for number in numbers)
    start = thread * extent
    first, stop = (each.apply("udiv", count) for each in (start, start + extent))
    *captured, slices = fields
    own_slice = slices.array(machine_code.Kind.I8).address(
        thread * number_of(entry, slice_bytes, numbers_of)
    )
    with entry.when(first.test("ult", stop)):
        body = machine_code.Number(entry, machine_code.Kind.POINTER, f"@{region.name}.body")
        entry.do(body, *captured, own_slice, first, stop)
    entry.finish()


Joined: TypeAlias = Set[tuple[int, int]]
Emitter: TypeAlias = Callable[[Function, tuple[str, ...], Joined], None]


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """An instruction on windows of buffers.

    `window_lanes`  how many contiguous elements each window has, in the order of the call
    `features`      what the target must have, in LLVM's names
    `emit`          writes the code, given the address of each window, and the pairs of windows of
                    which the second begins where the first ends
    """

    name: str
    features: tuple[str, ...]
    window_lanes: tuple[int, ...]
    emit: Emitter


def _emit_dot(
    product: base.ShortProduct, function: Function, windows: tuple[str, ...], _: Joined
) -> None:
    """Write an instruction of x86 as its text: the types of LLVM's intrinsics vary by version."""
    total, data, weights = windows
    lanes = product.columns
    sums = register_type(product.sums, lanes)
    words = f"<{lanes} x i32>"
    start = function.emit(f"load {sums}, ptr {total}, align 4")
    group = function.emit(f"load i32, ptr {data}, align 1")
    spread = function.splat_name("i32", group, lanes)
    matrix = function.emit(f"load {words}, ptr {weights}, align 1")
    operands = f"{words} {spread}, {words} {matrix}, {sums} {start}"
    result = function.emit(f"call {sums} {product.assembly}({operands})")
    function.effect(f"store {sums} {result}, ptr {total}, align 4")


def _emit_vpmaddwd(
    lanes: int, name: str, function: Function, windows: tuple[str, ...], _: Joined
) -> None:
    """Write vpmaddwd, which adds up pairs of products, and an addition."""
    total, data, weights = windows
    sums, factors = f"<{lanes} x i32>", f"<{2 * lanes} x i16>"
    start = function.emit(f"load {sums}, ptr {total}, align 4")
    pair = function.emit(f"load i32, ptr {data}, align 2")
    spread = function.splat_name("i32", pair, lanes)
    row = function.pure(f"bitcast {sums} {spread} to {factors}", spread)
    matrix = function.emit(f"load {factors}, ptr {weights}, align 2")
    pairs = function.emit(function.call_text(sums, name, (factors, row), (factors, matrix)))
    result = function.emit(f"add {sums} {start}, {pairs}")
    function.effect(f"store {sums} {result}, ptr {total}, align 4")


def _emit_neon_dot(
    instruction: str, function: Function, windows: tuple[str, ...], _: Joined
) -> None:
    """Write sdot or usdot, which take the four bytes of one lane of the data for all lanes."""
    total, data, weights = windows
    group = function.emit(
        f"load float, ptr {data}, align 1"
    )  # an i32 would be spread as it is read
    first = function.pure(f"insertelement <4 x float> poison, float {group}, i64 0", group)
    lane = function.pure(f"bitcast <4 x float> {first} to <4 x i32>", first)
    spread = function.pure(machine_code.shuffle_text("<4 x i32>", lane, "poison", (0,) * 4), lane)
    factors = function.pure(f"bitcast <4 x i32> {spread} to <16 x i8>", spread)
    _accumulate(function, instruction, total, factors, weights)


def _emit_neon_tile(
    instruction: str, function: Function, windows: tuple[str, ...], joined: Joined
) -> None:
    """Write smmla or usmmla: the data are two rows of two groups of four bytes, the weights two
    columns of eight bytes, and the sums lie row by row.
    """
    total, *data, weights = windows
    if {(1, 2), (3, 4)} <= joined:  # the groups of a row lie side by side
        factors = _gathered(function, "double", (data[0], data[2]))
    elif {(1, 3), (2, 4)} <= joined:  # the rows of a group do
        first, second = (_first_half(function, each) for each in data[:2])
        both = function.emit(machine_code.shuffle_text("<4 x i32>", first, second, (0, 4, 1, 5)))
        factors = function.emit(f"bitcast <4 x i32> {both} to <16 x i8>")
    else:
        factors = _gathered(function, "float", tuple(data))
    _accumulate(function, instruction, total, factors, weights)


def _accumulate(
    function: Function, instruction: str, total: str, factors: str, weights: str
) -> None:
    """Add the products of sixteen bytes with as many weights to four sums."""
    start = function.emit(f"load <4 x i32>, ptr {total}, align 4")
    matrix = function.emit(f"load <16 x i8>, ptr {weights}, align 1")
    result = function.emit(
        function.call_text(
            "<4 x i32>",
            f"llvm.aarch64.neon.{instruction}.v4i32.v16i8",
            ("<4 x i32>", start),
            ("<16 x i8>", factors),
            ("<16 x i8>", matrix),
        )
    )
    function.effect(f"store <4 x i32> {result}, ptr {total}, align 4")


def _first_half(function: Function, address: str) -> str:
    """Eight bytes as the first of four numbers; the others are not used."""
    half = function.emit(f"load double, ptr {address}, align 1")
    whole = function.emit(f"insertelement <2 x double> poison, double {half}, i64 0")
    return function.emit(f"bitcast <2 x double> {whole} to <4 x i32>")


def _gathered(function: Function, kind: str, addresses: tuple[str, ...]) -> str:
    """Elements from several addresses in one register; integers would pass through others."""
    vector = f"<{len(addresses)} x {kind}>"
    result = "poison"
    for lane, address in enumerate(addresses):
        part = function.emit(f"load {kind}, ptr {address}, align 1")
        result = function.emit(f"insertelement {vector} {result}, {kind} {part}, i64 {lane}")
    return function.emit(f"bitcast {vector} {result} to <16 x i8>")


_EMITTERS: dict[str, Emitter] = {
    "dot4_u8i8_i32x4": partial(_emit_neon_dot, "usdot"),
    "dot4_i8i8_i32x4": partial(_emit_neon_dot, "sdot"),
    "mmla_u8i8_i32": partial(_emit_neon_tile, "usmmla"),
    "mmla_i8i8_i32": partial(_emit_neon_tile, "smmla"),
    "dot2_i16i16_i32x16": partial(_emit_vpmaddwd, 16, "llvm.x86.avx512.pmaddw.d.512"),
    "dot2_i16i16_i32x8": partial(_emit_vpmaddwd, 8, "llvm.x86.avx2.pmadd.wd"),
}

INTRINSICS: tuple[Intrinsic, ...] = tuple(
    Intrinsic(
        each.intrinsic,
        each.features,
        each.windows,
        partial(_emit_dot, each) if each.x86 else _EMITTERS[each.intrinsic],
    )
    for each in base.SHORT_PRODUCTS
    if not each.is_matrix  # `tiles.py` has those
)


def intrinsics_of(target: base.CpuTarget) -> dict[str, Intrinsic]:
    """The intrinsics that a target has, by name; the meaning replaces all others."""
    had = set(target.instructions)
    return {each.name: each for each in INTRINSICS if set(each.features) <= had}
