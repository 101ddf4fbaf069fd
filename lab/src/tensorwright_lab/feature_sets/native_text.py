"""Write a function of LLVM IR as if in Python: numbers with operators, arrays, loops, branches.

Variables and arrays lie on the stack of the function; LLVM keeps the variables in registers.
Numbers are 8-byte integers, 4-byte floats and truths, and mix with Python's numbers of their kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tensorwright.base import DType
from tensorwright.codegen.llvm import float_literal

INT, FLOAT, TRUTH = "i64", "float", "i1"

_ARITHMETIC = {
    INT: {"+": "add", "-": "sub", "*": "mul"},
    FLOAT: {"+": "fadd", "-": "fsub", "*": "fmul"},
}
_TESTS = {
    INT: {"<": "icmp slt", ">": "icmp sgt"},
    FLOAT: {"<": "fcmp olt", ">": "fcmp ogt", "=": "fcmp oeq"},
}


@dataclass(frozen=True, slots=True, eq=False)
class Number:
    """A value of the function that is written."""

    code: NativeText
    kind: str
    name: str

    def __add__(self, other: Operand) -> Number:
        return self.code.arithmetic("+", self, other)

    def __sub__(self, other: Operand) -> Number:
        return self.code.arithmetic("-", self, other)

    def __mul__(self, other: Operand) -> Number:
        return self.code.arithmetic("*", self, other)

    def __lt__(self, other: Operand) -> Number:
        return self.code.test("<", self, other)

    def __gt__(self, other: Operand) -> Number:
        return self.code.test(">", self, other)

    def is_same(self, other: Operand) -> Number:
        """Whether two floats are equal."""
        return self.code.test("=", self, other)

    def __and__(self, other: Number) -> Number:
        return self.code.value(TRUTH, f"and i1 {self.name}, {other.name}")

    def __or__(self, other: Number) -> Number:
        return self.code.value(TRUTH, f"or i1 {self.name}, {other.name}")


Operand = Number | int | float


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """Numbers of one kind in memory, counted from 0."""

    code: NativeText
    kind: str
    pointer: str

    def __getitem__(self, index: Operand) -> Number:
        return self.code.value(self.kind, f"load {self.kind}, ptr {self._at(index)}")

    def __setitem__(self, index: Operand, content: Operand) -> None:
        name = self.code.number(content, self.kind).name
        self.code.effect(f"store {self.kind} {name}, ptr {self._at(index)}")

    def part(self, first: Operand) -> Array:
        """The array from a place on."""
        return Array(self.code, self.kind, self._at(first))

    def _at(self, index: Operand) -> str:
        offset = self.code.number(index, INT).name
        where = f"getelementptr {self.kind}, ptr {self.pointer}, i64 {offset}"
        return self.code.value("ptr", where).name


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """A number that changes."""

    cell: Array

    @property
    def now(self) -> Number:
        """Its value at this point of the code."""
        return self.cell[0]

    def set(self, content: Operand) -> None:
        """Give it another value."""
        self.cell[0] = content


class NativeText:
    """One function while it is written; mutable.

    parameters   kind and name of each, "ptr" for arrays
    """

    def __init__(self, symbol: str, parameters: Sequence[tuple[str, str]]) -> None:
        given = ", ".join(f"{kind} %{name}" for kind, name in parameters)
        self._head = f"define void @{symbol}({given}) {{"
        self._kinds = {name: kind for kind, name in parameters}
        self._stack: list[str] = []
        self._lines: list[str] = []
        self._count = 0

    def text(self) -> str:
        """The module, when all is written."""
        return "\n".join(
            (
                "declare float @log2f(float) nounwind willreturn memory(none)",
                "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
                self._head,
                "entry:",
                *self._stack,
                *self._lines,
                "  ret void",
                "}",
                "",
            )
        )

    # Values

    def given(self, name: str) -> Number:
        """A parameter that is a number."""
        return Number(self, self._kinds[name], f"%{name}")

    def given_array(self, name: str, kind: str) -> Array:
        """A parameter that is an array."""
        return Array(self, kind, f"%{name}")

    def number(self, content: Operand, kind: str) -> Number:
        """A number as it is, or a constant of a kind."""
        if isinstance(content, Number):
            return content
        text = float_literal(float(content), DType.F32) if kind == FLOAT else str(int(content))
        return Number(self, kind, text)

    def array(self, kind: str, size: int) -> Array:
        """An array of the function, with anything in it."""
        name = self._fresh()
        self._stack.append(f"  {name} = alloca [{size} x {kind}], align 16")
        return Array(self, kind, name)

    def variable(self, kind: str, first: Operand) -> Variable:
        """A number that changes."""
        variable = Variable(self.array(kind, 1))
        variable.set(first)
        return variable

    def arithmetic(self, sign: str, a: Number, b: Operand) -> Number:
        """The sum, the difference or the product."""
        other = self.number(b, a.kind)
        return self.value(a.kind, f"{_ARITHMETIC[a.kind][sign]} {a.kind} {a.name}, {other.name}")

    def test(self, sign: str, a: Number, b: Operand) -> Number:
        """Whether a comparison holds."""
        other = self.number(b, a.kind)
        return self.value(TRUTH, f"{_TESTS[a.kind][sign]} {a.kind} {a.name}, {other.name}")

    def choose(self, test: Number, a: Operand, b: Operand, kind: str) -> Number:
        """One of two numbers."""
        first, second = self.number(a, kind), self.number(b, kind)
        text = f"select i1 {test.name}, {kind} {first.name}, {kind} {second.name}"
        return self.value(kind, text)

    def larger(self, a: Number, b: Operand) -> Number:
        """The larger of two numbers."""
        return self.choose(a > b, a, b, a.kind)

    def smaller(self, a: Number, b: Operand) -> Number:
        """The smaller of two numbers."""
        return self.choose(a < b, a, b, a.kind)

    def log2(self, a: Number) -> Number:
        """The logarithm to base 2."""
        return self.value(FLOAT, f"call float @log2f(float {a.name})")

    def as_float(self, a: Number) -> Number:
        """An integer as a float."""
        return self.value(FLOAT, f"sitofp i64 {a.name} to float")

    def exponent(self, a: Number) -> Number:
        """The integer part of the logarithm to base 2 of a float that is at least 1."""
        bits = self.value("i32", f"bitcast float {a.name} to i32")
        high = self.value("i32", f"lshr i32 {bits.name}, 23")
        return self.value(INT, f"zext i32 {high.name} to i64") - 127

    def half(self, a: Number) -> Number:
        """Half of an integer that is not negative, rounded down."""
        return self.value(INT, f"lshr i64 {a.name}, 1")

    # What is done

    def clear(self, floats: Array, count: Operand) -> None:
        """Fill the first of an array of floats with zeros."""
        size = self.number(count, INT) * 4
        self.effect(
            f"call void @llvm.memset.p0.i64(ptr {floats.pointer}, i8 0, i64 {size.name}, i1 false)"
        )

    @contextmanager
    def loop(self, count: Operand, first: int = 0) -> Iterator[Number]:
        """For each number from the first on that is below `count`."""
        at = self.variable(INT, first)
        stop = self.number(count, INT)
        with self.repeat(lambda: at.now < stop):
            number = at.now
            yield number
            at.set(number + 1)

    @contextmanager
    def repeat(self, test: Callable[[], Number]) -> Iterator[None]:
        """While a test holds, which is written anew before each turn."""
        head, body, after = self._label(), self._label(), self._label()
        self.effect(f"br label %{head}")
        self._lines.append(f"{head}:")
        self.effect(f"br i1 {test().name}, label %{body}, label %{after}")
        self._lines.append(f"{body}:")
        yield
        self.effect(f"br label %{head}")
        self._lines.append(f"{after}:")

    @contextmanager
    def when(self, test: Number) -> Iterator[None]:
        """Where a test holds."""
        body, after = self._label(), self._label()
        self.effect(f"br i1 {test.name}, label %{body}, label %{after}")
        self._lines.append(f"{body}:")
        yield
        self.effect(f"br label %{after}")
        self._lines.append(f"{after}:")

    def value(self, kind: str, operation: str) -> Number:
        """The result of an instruction."""
        name = self._fresh()
        self._lines.append(f"  {name} = {operation}")
        return Number(self, kind, name)

    def effect(self, instruction: str) -> None:
        """An instruction without a result."""
        self._lines.append(f"  {instruction}")

    def _fresh(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def _label(self) -> str:
        self._count += 1
        return f"b{self._count}"
