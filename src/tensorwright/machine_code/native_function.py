"""Write a function of LLVM IR as if in Python: parameters, loops, branches, calls.

    >>> from tensorwright.machine_code import Kind, Module
    >>> module = Module()
    >>> function = NativeFunction(module, "total", (Kind.POINTER, Kind.I64), Kind.F32)
    >>> numbers, count = function.parameters
    >>> total = function.variable(Kind.F32, 0.0)
    >>> with function.loop(count) as n:
    ...     total.set(total.now + numbers.array(Kind.F32)[n])
    >>> function.finish(total.now)

Variables and arrays lie on the stack of the function; LLVM keeps the variables in registers.

Values of a native function while it is written: numbers with Python's operators, arrays.

Numbers have LLVM's types: integers, floats, truths ("i1"), pointers, and vectors of these. Numbers
of Python mix with them. Comparisons of integers are signed, shifts to the right are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TypeAlias

from tensorwright.base import DType
from tensorwright.machine_code.text import (
    Branch,
    FunctionText,
    Module,
    float_literal,
    mangled,
    splat_literal,
    vector_type,
)


class Kind(StrEnum):
    """LLVM's types of single values; `vector_type` makes vectors of them."""

    POINTER = "ptr"
    TRUTH = "i1"
    I8 = "i8"
    I32 = "i32"
    I64 = "i64"
    F32 = "float"
    F64 = "double"


_FLOATS: dict[str, DType] = {Kind.F32: DType.F32, Kind.F64: DType.F64}
_SIZES: dict[str, int] = dict(zip(Kind, (8, 1, 1, 4, 8, 4, 8), strict=True))
_VECTOR_ALIGN = 64


def alignment(kind: str) -> int:
    """The alignment of an array's elements, in bytes."""
    return _SIZES.get(kind, _VECTOR_ALIGN)


@lru_cache(maxsize=256)
def element_and_lanes(kind: str) -> tuple[str, int]:
    """The type of each lane of a type, and the number of lanes."""
    if not kind.startswith("<"):
        return kind, 1
    lanes, _, element = kind[1:-1].partition(" x ")
    return element, int(lanes)


@dataclass(frozen=True, slots=True, eq=False)
class Number:
    """A value of a function: its LLVM type, and its name or a literal."""

    code: FunctionText
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    def __add__(self, other: Operand) -> Number:
        return self.apply("fadd" if self.is_float else "add", other)

    def __sub__(self, other: Operand) -> Number:
        return self.apply("fsub" if self.is_float else "sub", other)

    def __mul__(self, other: Operand) -> Number:
        return self.apply("fmul" if self.is_float else "mul", other)

    def __truediv__(self, other: Operand) -> Number:
        return self.apply("fdiv", other)

    def __neg__(self) -> Number:
        return self.result(self.kind, f"fneg {self}")

    def __and__(self, other: Operand) -> Number:
        return self.apply("and", other)

    def __or__(self, other: Operand) -> Number:
        return self.apply("or", other)

    def __lshift__(self, other: Operand) -> Number:
        return self.apply("shl", other)

    def __rshift__(self, other: Operand) -> Number:
        return self.apply("lshr", other)

    def __lt__(self, other: Operand) -> Number:
        return self.test("olt" if self.is_float else "slt", other)

    def __gt__(self, other: Operand) -> Number:
        return self.test("ogt" if self.is_float else "sgt", other)

    def equals(self, other: Operand) -> Number:
        """Whether they are equal."""
        return self.test("oeq" if self.is_float else "eq", other)

    def differs(self, other: Operand) -> Number:
        """Whether they are not equal."""
        return self.test("une" if self.is_float else "ne", other)

    @property
    def is_float(self) -> bool:
        """Whether it is a float, or a vector of floats."""
        return element_and_lanes(self.kind)[0] in _FLOATS

    def apply(self, operation: str, other: Operand) -> Number:
        """An operation of two operands of its type, such as "ashr"."""
        return self.result(self.kind, f"{operation} {self}, {self.like(other).name}")

    def test(self, predicate: str, other: Operand) -> Number:
        """A comparison, such as "ult": a truth for each lane."""
        compare = "fcmp" if self.is_float else "icmp"
        truth = vector_type(Kind.TRUTH, element_and_lanes(self.kind)[1])
        return self.result(truth, f"{compare} {predicate} {self}, {self.like(other).name}")

    def choose(self, then: Number, otherwise: Operand) -> Number:
        """`then` where this truth holds, else `otherwise`, lane by lane."""
        return self.result(then.kind, f"select {self}, {then}, {then.like(otherwise)}")

    def smaller(self, other: Operand) -> Number:
        """The smaller of two numbers; of a NaN and another, the other."""
        return (self < other).choose(self, other)

    def larger(self, other: Operand) -> Number:
        """The larger of two numbers; of a NaN and another, the other."""
        return (self > other).choose(self, other)

    def cast(self, conversion: str, kind: str) -> Number:
        """A conversion, such as "zext", to another type."""
        return self.result(kind, f"{conversion} {self} to {kind}")

    def intrinsic(self, name: str, *others: Operand) -> Number:
        """The result of an LLVM intrinsic of it and others; all have its type."""
        symbol = f"llvm.{name}.{mangled(*element_and_lanes(self.kind))}"
        arguments = [(self.kind, each.name) for each in (self, *map(self.like, others))]
        return self.result(self.kind, self.code.call_text(self.kind, symbol, *arguments))

    def like(self, content: Operand) -> Number:
        """A number as it is, or a constant of this one's type."""
        return content if isinstance(content, Number) else constant(self.code, self.kind, content)

    def result(self, kind: str, operation: str) -> Number:
        """The result of an instruction, which is appended to the function."""
        return Number(self.code, kind, self.code.emit(operation))

    def lane(self, number: int) -> Number:
        """One lane of a vector."""
        element, _ = element_and_lanes(self.kind)
        return self.result(element, f"extractelement {self}, i32 {number}")

    def array(self, element: str) -> NativeArray:
        """The array that a pointer points to."""
        return NativeArray(self, element)


Operand: TypeAlias = "Number | int | float"


def constant(code: FunctionText, kind: str, content: int | float) -> Number:
    """A number of Python, in every lane of a type."""
    element, lanes = element_and_lanes(kind)
    if element == Kind.POINTER:
        text = "null"
    elif element in _FLOATS:
        text = float_literal(float(content), _FLOATS[element])
    else:
        text = str(int(content))
    return Number(code, kind, splat_literal(element, text, lanes))


@dataclass(frozen=True, slots=True, eq=False)
class NativeArray:
    """Elements of one type in memory, counted from 0."""

    pointer: Number
    element: str

    def __getitem__(self, position: Operand) -> Number:
        return self.vector(position, 1)

    def __setitem__(self, position: Operand, content: Operand) -> None:
        """Write an element, or those of a vector from the position on."""
        number = content
        if not isinstance(number, Number):
            number = constant(self.pointer.code, self.element, number)
        self.pointer.code.effect(f"store {number}, {self._at(position)}")

    def vector(self, position: Operand, lanes: int) -> Number:
        """`lanes` elements from a position on, as a vector."""
        kind = vector_type(self.element, lanes)
        return self.pointer.result(kind, f"load {kind}, {self._at(position)}")

    def part(self, first: Operand) -> NativeArray:
        """The array from a position on."""
        return NativeArray(self.address(first), self.element)

    def address(self, position: Operand) -> Number:
        """A pointer to an element."""
        if position == 0:
            return self.pointer
        offset = position if isinstance(position, Number) else f"i64 {position}"
        where = f"getelementptr {self.element}, {self.pointer}, {offset}"
        return self.pointer.result(Kind.POINTER, where)

    def acquire(self, position: Operand = 0) -> Number:
        """Read an element atomically, with acquire order."""
        where = self._at(position).replace(", align", " acquire, align")
        return self.pointer.result(self.element, f"load atomic {self.element}, {where}")

    def release(self, position: Operand, content: Number) -> None:
        """Write an element atomically, with release order."""
        where = self._at(position).replace(", align", " release, align")
        self.pointer.code.effect(f"store atomic {content}, {where}")

    def exchange(self, position: Operand, before: int, after: int) -> Number:
        """Replace an element by `after` if it is `before`, atomically; whether it was."""
        old, new = (constant(self.pointer.code, self.element, each) for each in (before, after))
        where = f"{self.address(position)}, {old}, {new} acq_rel acquire"
        pair = self.pointer.code.emit(f"cmpxchg {where}")
        kind = f"{{ {self.element}, {Kind.TRUTH} }}"
        return self.pointer.result(Kind.TRUTH, f"extractvalue {kind} {pair}, 1")

    def count(self, position: Operand, step: int) -> Number:
        """Add to an element atomically; the element before."""
        change = constant(self.pointer.code, self.element, step)
        where = f"atomicrmw add {self.address(position)}, {change} acq_rel"
        return self.pointer.result(self.element, where)

    def _at(self, position: Operand) -> str:
        return f"{self.address(position)}, align {alignment(self.element)}"


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """A number that changes."""

    cell: NativeArray

    @property
    def now(self) -> Number:
        """Its value at this point of the code."""
        return self.cell[0]

    def set(self, content: Operand) -> None:
        """Give it another value."""
        self.cell[0] = content


_STACK_ALIGN = 16


class NativeFunction(FunctionText):
    """One function while it is written; mutable.

    parameters   in the order of their types
    attributes   what LLVM is told about it
    """

    def __init__(
        self,
        module: Module,
        symbol: str,
        parameters: Sequence[str] = (),
        result: str = "void",
        attributes: str = "nounwind",
        *,
        is_internal: bool = False,
    ) -> None:
        self.symbol, self.name = symbol, f"@{symbol}"
        self.parameters = tuple(Number(self, kind, f"%x{n}") for n, kind in enumerate(parameters))
        listed = ", ".join(map(str, self.parameters))
        linkage = "internal " if is_internal else ""
        super().__init__(module, f"define {linkage}{result} @{symbol}({listed}) {attributes}")

    def finish(self, result: Number | None = None) -> None:
        """Close the function with a return and add it to the module."""
        self.module.define(self.symbol, self.close("void" if result is None else str(result)))

    # Values

    def number(self, content: Operand, kind: str = Kind.I64) -> Number:
        """A number as it is, or a constant of a type."""
        return content if isinstance(content, Number) else constant(self, kind, content)

    def array(self, element: str, size: Operand, align: int = _STACK_ALIGN) -> NativeArray:
        """An uninitialised array on the stack; of a `Number` as size, another one at each run."""
        if isinstance(size, Number):
            name = self.emit(f"alloca {element}, {size}, align {align}")
        else:
            name = self.alloca(f"[{size} x {element}]", align)
        return NativeArray(Number(self, Kind.POINTER, name), element)

    def variable(self, kind: str, first: Operand) -> Variable:
        """A number that changes."""
        cell = Number(self, Kind.POINTER, self.alloca(kind, alignment(kind)))
        variable = Variable(cell.array(kind))
        variable.set(first)
        return variable

    def address_of(self, other: NativeFunction) -> Number:
        """A pointer to a function of the module."""
        return Number(self, Kind.POINTER, other.name)

    def outside(self, symbol: str) -> Number:
        """The address of a symbol from outside."""
        self.module.declare(f"@{symbol} = external global i8")
        return Number(self, Kind.POINTER, f"@{symbol}")

    def call(
        self, kind: str, function: str | Number | NativeFunction, *arguments: Number, note: str = ""
    ) -> Number:
        """The result of a function: of the module, of a pointer, or from outside by its symbol.

        note   what LLVM is told about a function from outside
        """
        return Number(self, kind, self.emit(self._call(kind, function, arguments, note)))

    def do(self, function: str | Number | NativeFunction, *arguments: Number) -> None:
        """Call a function without a result."""
        self.effect(self._call("void", function, arguments))

    def _call(
        self,
        kind: str,
        function: str | Number | NativeFunction,
        arguments: Sequence[Number],
        note: str = "",
    ) -> str:
        if isinstance(function, str):
            typed = ((argument.kind, argument.name) for argument in arguments)
            return self.call_text(kind, function, *typed, note=note)
        return f"call {kind} {function.name}({', '.join(map(str, arguments))})"

    # Control flow

    @contextmanager
    def loop(self, stop: Operand, first: Operand = 0, step: int = 1) -> Iterator[Number]:
        """A loop over `range(first, stop, step)`."""
        at = self.variable(Kind.I64, first)
        with self.repeat(lambda: at.now < stop):
            position = at.now
            yield position
            at.set(position + step)

    @contextmanager
    def repeat(self, test: Callable[[], Number]) -> Iterator[None]:
        """A loop that runs while a test holds; `test` writes it at the head of the loop."""
        head, body, after = self.label(), self.label(), self.label()
        self.effect(f"br label %{head}")
        self.start(head)
        self.effect(f"br {test()}, label %{body}, label %{after}")
        self.start(body)
        yield
        self.effect(f"br label %{head}")
        self.start(after)

    def when(self, test: Number) -> Branch:
        """As `branch_on`, with a truth as a number."""
        return self.branch_on(test.name)

    def switch(self, value: Number, count: int) -> Iterator[int]:
        """Yields each number below `count`; what is written then runs if the value is that."""
        after = self.label()
        labels = [self.label() for _ in range(count)]
        cases = " ".join(f"{value.kind} {n}, label %{label}" for n, label in enumerate(labels))
        self.effect(f"switch {value}, label %{after} [{cases}]")
        for number, label in enumerate(labels):
            self.start(label)
            yield number
            self.effect(f"br label %{after}")
        self.start(after)
