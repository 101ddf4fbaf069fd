"""Parallel loops: the body as a function of its own, shared out through libgomp's ABI.

    NAME.parN.body(captured..., workspace, slice, first, stop)   runs iterations first..stop-1
    NAME.parN(context)                                          what GOMP_parallel calls

Each thread runs one contiguous piece of the iterations. One thread alone calls the body directly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tensorwright.codegen.analysis.linear import Linear
from tensorwright.codegen.llvm.memory.access import Piece
from tensorwright.codegen.llvm.memory.buffers import Slots
from tensorwright.codegen.llvm.text.builder import Function
from tensorwright.loop import Stmt, buffers_used
from tensorwright.machine_code import Kind, Module, NativeFunction, Number

_DECLARATIONS = (
    "declare void @GOMP_parallel(ptr, ptr, i32, i32)",
    "declare i32 @omp_get_thread_num()",
    "declare i32 @omp_get_num_threads()",
)


@dataclass(frozen=True, slots=True)
class Region:
    """A parallel loop; `captured` are the (type and attributes, name) that its body needs."""

    name: str
    extent: int
    captured: tuple[tuple[str, str], ...]

    def body_head(self) -> str:
        """The head of the body's function."""
        own = ["ptr %workspace", "ptr %slice", "i64 %first", "i64 %stop"]
        listed = ", ".join([f"{kind} {name}" for kind, name in self.captured] + own)
        return f"define internal void @{self.name}.body({listed}) nounwind"

    def arguments(self, slice_: str, first: str, stop: str) -> str:
        """The arguments of a call of the body, under the captured names."""
        own = ["ptr %workspace", f"ptr {slice_}", f"i64 {first}", f"i64 {stop}"]
        return ", ".join([f"{kind.split()[0]} {name}" for kind, name in self.captured] + own)


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


def write_region(function: Function, region: Region) -> None:
    """Write the place of a parallel loop: one thread calls the body, more go by libgomp."""
    for line in _DECLARATIONS:
        function.module.declare(line)
    fields = [name for _, name in region.captured] + ["%workspace", "%slice"]
    context = function.alloca(f"[{len(fields)} x i64]", 8)
    multi = function.emit("icmp sgt i32 %threads, 1")
    together, alone, after = function.label(), function.label(), function.label()
    function.effect(f"br i1 {multi}, label %{together}, label %{alone}")
    function.start(together)
    kinds = [kind.split()[0] for kind, _ in region.captured] + ["ptr", "ptr"]
    for position, (kind, name) in enumerate(zip(kinds, fields, strict=True)):
        place = function.emit(f"getelementptr i64, ptr {context}, i64 {position}")
        function.effect(f"store {kind} {name}, ptr {place}")
    few = function.emit(f"icmp slt i32 %threads, {region.extent}")
    count = function.emit(f"select i1 {few}, i32 %threads, i32 {region.extent}")
    function.effect(
        f"call void @GOMP_parallel(ptr @{region.name}, ptr {context}, i32 {count}, i32 0)"
    )
    function.effect(f"br label %{after}")
    function.start(alone)
    arguments = region.arguments("%slice", "0", str(region.extent))
    function.effect(f"call void @{region.name}.body({arguments})")
    function.effect(f"br label %{after}")
    function.start(after)


def write_entry(module: Module, region: Region, slice_bytes: int) -> None:
    """Write what each thread runs: unpack the context, find its piece, call the body."""
    entry = NativeFunction(module, region.name, (Kind.POINTER,), is_internal=True)
    words = entry.parameters[0].array(Kind.I64)
    kinds = [*(kind.split()[0] for kind, _ in region.captured), Kind.POINTER, Kind.POINTER]
    fields = [words.address(n).array(kind)[0] for n, kind in enumerate(kinds)]
    numbers = (
        entry.call(Kind.I32, "omp_get_thread_num"),
        entry.call(Kind.I32, "omp_get_num_threads"),
    )
    thread, count = (number.cast("zext", Kind.I64) for number in numbers)
    start = thread * region.extent
    first, stop = (each.apply("udiv", count) for each in (start, start + region.extent))
    *captured, slices = fields
    own_slice = slices.array(Kind.I8).address(thread * slice_bytes)
    with entry.when(first.test("ult", stop)):
        body = Number(entry, Kind.POINTER, f"@{region.name}.body")
        entry.do(body, *captured, own_slice, first, stop)
    entry.finish()
