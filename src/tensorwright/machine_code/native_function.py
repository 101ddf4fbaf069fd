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
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tensorwright.machine_code.numbers import (
    Kind,
    NativeArray,
    Number,
    Operand,
    Variable,
    alignment,
    constant,
)
from tensorwright.machine_code.text import Branch, FunctionText, Module

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
