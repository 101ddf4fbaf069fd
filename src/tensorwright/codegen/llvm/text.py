"""Types, constants, names, blocks and scopes of the text that is written.

How types, constants and values in registers are written in LLVM's text.

Write the text of LLVM functions: names, blocks, and scopes that reuse and hoist what they can.

A `Function` is written front to back. Its scopes nest like the loops and branches of the program.
A pure operation is emitted once per scope and text, in the outermost scope that has its operands:
a value of scope d that is first needed in a deeper scope goes just before scope d+1 opens. So the
unrolled copies of a statement share their address arithmetic, and loop invariants leave the loop.

An address that a loop moves is a pointer that the loop advances (`moved`): one for each buffer and
loop, however many unrolled copies read at constant distances from it.

Operations on vectors of any element type, one instruction or a few for each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tensorwright import machine_code
from tensorwright.base import CpuTarget, DType
from tensorwright.codegen.llvm.math import math_function

_REGISTER = {
    DType.F16: "float",  # 16-bit floats are computed in f32 and rounded after each operation
    DType.BF16: "float",
    DType.F32: "float",
    DType.F64: "double",
    DType.BOOL: "i1",
}
_MEMORY = {DType.F16: "half", DType.BF16: "i16", DType.BOOL: "i8"}


class Val(NamedTuple):
    """A value in registers: the name of an SSA value or a literal; one lane is a scalar."""

    name: str
    dtype: DType
    lanes: int = 1

    @property
    def is_literal(self) -> bool:
        """True for a constant."""
        return not self.name.startswith("%")


def register_element(dtype: DType) -> str:
    """The LLVM type that an element has in registers."""
    return _REGISTER.get(dtype) or f"i{dtype.size_bytes * 8}"


def memory_element(dtype: DType) -> str:
    """The LLVM type that an element has in memory."""
    return _MEMORY.get(dtype) or register_element(dtype)


def register_type(dtype: DType, lanes: int) -> str:
    """The LLVM type of a number of lanes in registers."""
    return machine_code.vector_type(register_element(dtype), lanes)


def memory_type(dtype: DType, lanes: int) -> str:
    """The LLVM type of a number of lanes in memory."""
    return machine_code.vector_type(memory_element(dtype), lanes)


def literal_text(value: float | int | bool, dtype: DType) -> str:
    """A constant of a dtype as LLVM text."""
    if dtype is DType.BOOL:
        return "true" if value else "false"
    if dtype.is_float:
        return machine_code.float_literal(
            float(value), DType.F64 if dtype is DType.F64 else DType.F32
        )
    bits = dtype.size_bytes * 8
    wrapped = int(value) & ((1 << bits) - 1)
    return str(wrapped - (1 << bits) if wrapped >> (bits - 1) else wrapped)


def scalar_literal(value: Val) -> str | None:
    """The literal in every lane of a constant, or None."""
    if value.is_literal and not value.name.startswith("<"):
        return value.name.removeprefix("splat (").rstrip(")").split(" ")[-1]
    return None


def wrapped_literal(active: range, lanes: int) -> str:
    """A constant mask as LLVM text."""
    return "<" + ", ".join(f"i1 {'true' if k in active else 'false'}" for k in range(lanes)) + ">"


_MOST_MOVED = 8  # pointers that one loop advances: each holds a register through the whole loop
LOOP_METADATA = (
    "!0 = distinct !{!0, !1, !2}",
    '!1 = !{!"llvm.loop.unroll.disable"}',
    '!2 = !{!"llvm.loop.vectorize.enable", i1 false}',
)
"""The end of a module whose loops LLVM must leave as they are."""


class Moved(NamedTuple):
    """A pointer or an offset that a loop advances by a number of bytes."""

    name: str
    kind: str
    start: str
    step_bytes: int


class Scope:
    """A loop body, a branch or a whole function while it is written."""

    __slots__ = (
        *("conditional", "first", "hoist", "hoisted_loads", "index"),
        *("memory", "moved", "pure", "written"),
    )

    def __init__(self, written: frozenset[str], *, conditional: bool) -> None:
        self.written = written  # buffers that statements inside write
        self.conditional = conditional
        self.index = ""  # of a loop: the name of its variable, and its first value
        self.first = "0"
        self.moved: list[Moved] = []
        self.hoist: machine_code.Lines = []  # lines just before the scope opens
        self.hoisted_loads = 0
        self.pure: dict[str, str] = {}
        self.memory: dict[str, dict[object, Val]] = {}  # buffer -> access -> content


class Function(machine_code.FunctionText):
    """One function of a kernel while it is written."""

    def __init__(self, module: machine_code.Module, head: str) -> None:
        super().__init__(module, head)
        self.scopes = [Scope(frozenset(), conditional=False)]
        self.depth: dict[str, int] = {}  # of a name: the index of its scope; 0 if absent
        self.ranges: dict[str, tuple[int, int]] = {}  # inclusive, of index values
        self.vectors: set[str] = set()  # index values that differ by lane

    def sibling(self, head: str) -> Function:
        """Another function of the module, whose names differ from those used so far."""
        other = Function(self.module, head)
        other._count = self._count
        other.ranges = dict(self.ranges)
        return other

    def emit(self, operation: str) -> str:
        """Append an operation here and return the name of its result."""
        return self.emit_at(len(self.scopes) - 1, operation)

    def emit_at(self, depth: int, operation: str) -> str:
        """Append an operation to a scope: here, or just before the scope inside that one opened."""
        self._count += 1
        name = f"%v{self._count}"
        if depth == len(self.scopes) - 1:
            self.lines.append(f"  {name} = {operation}")
        else:
            self.scopes[depth + 1].hoist.append(f"  {name} = {operation}")
        if depth:
            self.depth[name] = depth
        return name

    def pure(self, operation: str, *operands: str) -> str:
        """The result of an operation without effects, which must be harmless when hoisted."""
        depth = 0
        depths = self.depth
        for operand in operands:
            operand_depth = depths.get(operand, 0)
            if operand_depth > depth:
                depth = operand_depth
        names = self.scopes[depth].pure
        name = names.get(operation)
        if name is None:
            name = names[operation] = self.emit_at(depth, operation)
        return name

    def moved(self, base: str, index: str, step_bytes: int) -> str:
        """The pointer `base + step_bytes * index`, which the loop of the index advances if it may.

        A loop advances a pointer that comes from outside of it. If it advances many already, it
        advances one offset, which all further ones share.
        """
        depth = self.depth.get(index, 0)
        scope = self.scopes[depth]
        if scope.index != index:
            offset = index
            if step_bytes != 1:
                offset = self.pure(f"mul nsw i64 {index}, {step_bytes}", index)
            return self.pure(f"getelementptr i8, ptr {base}, i64 {offset}", base, offset)
        if self.depth.get(base, 0) < depth:
            pointer = scope.pure.get(f"{base} + {step_bytes}")
            if pointer is not None:
                return pointer
            if len(scope.moved) < _MOST_MOVED:
                return self._advance(scope, depth, "ptr", base, step_bytes)
        offset = scope.pure.get(f" + {step_bytes}") or self._advance(
            scope, depth, "i64", "", step_bytes
        )
        return self.pure(f"getelementptr i8, ptr {base}, i64 {offset}", base, offset)

    def _advance(self, scope: Scope, depth: int, kind: str, base: str, step_bytes: int) -> str:
        """Let a loop advance a pointer from `base`, or an offset from zero."""
        start = base or "0"
        if scope.first != "0":
            start = self.pure(f"mul nsw i64 {scope.first}, {step_bytes}", scope.first)
            if base:
                start = self.pure(f"getelementptr i8, ptr {base}, i64 {start}", base, start)
        name = self.fresh()
        self.depth[name] = depth
        scope.moved.append(Moved(name, kind, start, step_bytes))
        scope.pure[f"{base} + {step_bytes}"] = name
        return name

    def call(self, intrinsic: str, result: str, *arguments: tuple[str, str]) -> str:
        """The result of a pure intrinsic; arguments are (type, name)."""
        operation = self.call_text(result, intrinsic, *arguments)
        return self.pure(operation, *(name for _, name in arguments))

    def splat(self, value: Val, lanes: int) -> Val:
        """The value in every lane."""
        if value.lanes == lanes:
            return value
        element = register_element(value.dtype)
        return Val(self.splat_name(element, value.name, lanes), value.dtype, lanes)

    def splat_name(self, element: str, name: str, lanes: int) -> str:
        """A scalar of an LLVM type in every lane."""
        if not name.startswith("%"):
            return machine_code.splat_literal(element, name, lanes)
        kind = machine_code.vector_type(element, lanes)
        single = self.pure(f"insertelement {kind} poison, {element} {name}, i64 0", name)
        return self.pure(
            f"shufflevector {kind} {single}, {kind} poison, <{lanes} x i32> zeroinitializer", single
        )

    @contextmanager
    def loop(
        self, first: str, stop: str, bounds: tuple[int, int], written: frozenset[str]
    ) -> Iterator[str]:
        """A loop that runs at least once over first <= i < stop; gives the name of i."""
        scope = Scope(written, conditional=False)
        self.lines.append(scope.hoist)
        before, label = self.block, self.label()
        self.effect(f"br label %{label}")
        self.start(label)
        heading: machine_code.Lines = []
        self.lines.append(heading)
        body = len(self.lines)
        self.scopes.append(scope)
        index = self.fresh()
        scope.index, scope.first = index, first
        self.depth[index] = len(self.scopes) - 1
        self.ranges[index] = bounds
        yield index
        again, after = self.fresh(), self.label()
        test = ""
        for name, kind, start, step_bytes in scope.moved:
            onward = self.fresh()
            heading.append(
                f"  {name} = phi {kind} [ {start}, %{before} ], [ {onward}, %{self.block} ]"
            )
            if kind == "ptr":
                self.effect(f"{onward} = getelementptr i8, ptr {name}, i64 {step_bytes}")
            else:
                self.effect(f"{onward} = add nsw i64 {name}, {step_bytes}")
            if not test and first == "0" and stop.isdigit():
                test = self._reaches_end(scope, kind, start, onward, step_bytes * int(stop))
        if not test or _mentions(self.lines[body:], index):
            following = self.fresh()
            heading.append(
                f"  {index} = phi i64 [ {first}, %{before} ], [ {following}, %{self.block} ]"
            )
            self.effect(f"{following} = add nuw nsw i64 {index}, 1")
            test = f"icmp ult i64 {following}, {stop}"
        self.effect(f"{again} = {test}")
        self.effect(f"br i1 {again}, label %{label}, label %{after}, !llvm.loop !0")
        self.scopes.pop()
        self.start(after)

    def _reaches_end(
        self, scope: Scope, kind: str, start: str, onward: str, length_bytes: int
    ) -> str:
        """The test for another iteration, by an advanced pointer: it needs no counter."""
        end = str(length_bytes)
        if kind == "ptr":
            end = self.fresh()
            scope.hoist.append(f"  {end} = getelementptr i8, ptr {start}, i64 {length_bytes}")
        return f"icmp ne {kind} {onward}, {end}"

    @contextmanager
    def branch(self, condition: str, written: frozenset[str]) -> Iterator[None]:
        """Run the code written inside if the condition holds."""
        scope = Scope(written, conditional=True)
        self.lines.append(scope.hoist)
        with self.branch_on(condition):
            self.scopes.append(scope)
            yield
            self.scopes.pop()

    def content(self, buffer: str, access: object) -> Val | None:
        """The value that a buffer holds at an access, if a scope remembers it."""
        for scope in reversed(self.scopes):
            held = scope.memory.get(buffer)
            if held is not None and access in held:
                return held[access]
            if buffer in scope.written:
                return None
        return None

    def remember(self, depth: int, buffer: str, access: object, value: Val) -> None:
        """Note what a buffer holds, as seen from a scope."""
        self.scopes[depth].memory.setdefault(buffer, {})[access] = value

    def forget(self, buffer: str, access: object | None = None) -> None:
        """Drop what scopes remember of one access to a buffer, or of the whole buffer."""
        for scope in self.scopes:
            if access is None:
                scope.memory.pop(buffer, None)
            elif buffer in scope.memory:
                scope.memory[buffer].pop(access, None)

    def separate_loads(self) -> None:
        """Load anew from here on: LLVM assumes that this inline assembly writes memory."""
        self.effect('call void asm sideeffect "", "~{memory}"()')
        for scope in self.scopes:
            scope.memory.clear()


def _mentions(lines: machine_code.Lines, name: str) -> bool:
    """Whether a name occurs in lines."""
    pattern = re.compile(re.escape(name) + r"\b")
    return any(name in line and pattern.search(line) for line in machine_code.flat(lines))


class Lanewise:
    """Writes instructions; operands of one have the same lanes. Results are shared and hoisted."""

    def __init__(self, function: Function, target: CpuTarget) -> None:
        self.function = function
        self.target = target

    def constant(self, value: float | int | bool, like: Val) -> Val:
        """A number in the type and lanes of a value."""
        text = literal_text(value, like.dtype)
        element = register_element(like.dtype)
        return Val(machine_code.splat_literal(element, text, like.lanes), like.dtype, like.lanes)

    def fused(self, a: Val, b: Val, c: Val) -> Val:
        """a * b + c with one rounding."""
        lanes = max(a.lanes, b.lanes, c.lanes)
        return self.intrinsic("fma", *(self.function.splat(v, lanes) for v in (a, b, c)))

    def emit(self, text: str, dtype: DType, *operands: Val) -> Val:
        """An instruction with the lanes of its first operand."""
        name = self.function.pure(text, *(operand.name for operand in operands))
        return Val(name, dtype, operands[0].lanes)

    def binary(self, operation: str, a: Val, b: Val) -> Val:
        """An operation of two operands of one type, such as "fadd"."""
        kind = register_type(a.dtype, a.lanes)
        return self.emit(f"{operation} {kind} {a.name}, {b.name}", a.dtype, a, b)

    def test(self, predicate: str, a: Val, b: Val) -> Val:
        """A comparison: "olt" and its like for floats, "slt" and its like for integers."""
        compare = "fcmp" if a.dtype.is_float else "icmp"
        kind = register_type(a.dtype, a.lanes)
        return self.emit(f"{compare} {predicate} {kind} {a.name}, {b.name}", DType.BOOL, a, b)

    def choose(self, mask: Val, then: Val, otherwise: Val) -> Val:
        """`then` in the lanes of the mask, else `otherwise`."""
        kind = register_type(then.dtype, then.lanes)
        mask_kind = register_type(DType.BOOL, mask.lanes)
        text = f"select {mask_kind} {mask.name}, {kind} {then.name}, {kind} {otherwise.name}"
        return self.emit(text, then.dtype, then, mask, otherwise)

    def part(self, value: Val, first: int, count: int = 1) -> Val:
        """Some adjacent lanes of a vector; the value itself if that is all of them."""
        if value.lanes == count:
            return value
        kind = register_type(value.dtype, value.lanes)
        text = f"extractelement {kind} {value.name}, i64 {first}"
        if count > 1:
            text = machine_code.shuffle_text(
                kind, value.name, "poison", range(first, first + count)
            )
        return Val(self.function.pure(text, value.name), value.dtype, count)

    def intrinsic(self, name: str, *args: Val) -> Val:
        """Call `llvm.<name>` on operands of one type."""
        first = args[0]
        kind = register_type(first.dtype, first.lanes)
        suffix = machine_code.mangled(register_element(first.dtype), first.lanes)
        result = self.function.call(f"llvm.{name}.{suffix}", kind, *((kind, a.name) for a in args))
        return Val(result, first.dtype, first.lanes)

    def library(self, name: str, *args: Val) -> Val:
        """Call a mathematical function; 16-bit floats use that of f32."""
        first = args[0]
        dtype = DType.F64 if first.dtype is DType.F64 else DType.F32
        function = math_function(name, dtype, first.lanes, self.target)
        self.function.module.define(function.symbol, function.ir_text, function.declarations)
        kind = register_type(dtype, first.lanes)
        typed = ", ".join(f"{kind} {arg.name}" for arg in args)
        return self.emit(f"call {kind} {function.symbol}({typed})", first.dtype, *args)

    def rounded(self, value: Val) -> Val:
        """Round an f32 that stands for an f16 or a bf16; other types are as they are."""
        if value.dtype is DType.F16:
            kind, half = register_type(DType.F32, value.lanes), memory_type(DType.F16, value.lanes)
            small = self.emit(f"fptrunc {kind} {value.name} to {half}", value.dtype, value)
            return self.emit(f"fpext {half} {small.name} to {kind}", value.dtype, small)
        if value.dtype is DType.BF16:
            return self._rounded_bfloat(value)
        return value

    def _rounded_bfloat(self, value: Val) -> Val:
        """To nearest even on the upper 16 bits; all of these are set in a NaN."""
        kind, wide = register_type(DType.F32, value.lanes), register_type(DType.U32, value.lanes)
        bits = self.emit(f"bitcast {kind} {value.name} to {wide}", DType.U32, value)
        upper = self.binary("lshr", bits, self.constant(16, bits))
        odd = self.binary("and", upper, self.constant(1, bits))
        bias = self.binary("add", odd, self.constant(0x7FFF, bits))
        rounded = self.binary("add", bits, bias)
        is_nan = self.test("uno", value, value)
        chosen = self.choose(is_nan, self.constant(0xFFFFFFFF, bits), rounded)  # one "or"
        kept = self.binary("and", chosen, self.constant(0xFFFF0000, bits))
        return self.emit(f"bitcast {wide} {kept.name} to {kind}", value.dtype, kept)
