"""Parallel loops: the body as a function of its own, shared out by the names of libgomp's ABI.

    NAME.parN.body(captured..., workspace, slice, first, stop)   runs iterations first..stop-1
    NAME.parN(context)                                          what GOMP_parallel calls

Each piece is contiguous; pieces must not wait for each other, since one thread may run several of
them in turn. One thread alone calls the body directly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tensorwright.codegen.analysis.linear import Linear
from tensorwright.codegen.llvm.memory.access import Piece
from tensorwright.codegen.llvm.memory.buffers import Slots
from tensorwright.codegen.llvm.sizes import number_of
from tensorwright.codegen.llvm.text.builder import Function
from tensorwright.expr import Index, NamedSize
from tensorwright.loop import Stmt, buffers_used
from tensorwright.machine_code import Kind, Module, NativeFunction, Number


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
    module: Module, region: Region, slice_bytes: Index, sizes: Mapping[NamedSize, str]
) -> None:
    """Write what each thread runs: unpack the context, find its piece, call the body.

    sizes   the names of the named sizes, which each region captures
    """
    entry = NativeFunction(module, region.name, (Kind.POINTER,), is_internal=True)
    words = entry.parameters[0].array(Kind.I64)
    fields = [words.address(n).array(kind)[0] for n, (kind, _) in enumerate(region.context)]
    extent = words[len(fields)]
    field_of = {name: field for (_, name), field in zip(region.context, fields, strict=True)}
    numbers_of = {size: field_of[name] for size, name in sizes.items()}
    numbers = (
        entry.call(Kind.I32, "omp_get_thread_num"),
        entry.call(Kind.I32, "omp_get_num_threads"),
    )
    thread, count = (number.cast("zext", Kind.I64) for number in numbers)
    start = thread * extent
    first, stop = (each.apply("udiv", count) for each in (start, start + extent))
    *captured, slices = fields
    own_slice = slices.array(Kind.I8).address(thread * number_of(entry, slice_bytes, numbers_of))
    with entry.when(first.test("ult", stop)):
        body = Number(entry, Kind.POINTER, f"@{region.name}.body")
        entry.do(body, *captured, own_slice, first, stop)
    entry.finish()
