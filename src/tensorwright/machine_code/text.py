"""The text of LLVM modules and functions: types, literals, declarations, names and blocks.

`Module` and `FunctionText` are what every writer of LLVM's text has in common: code generators, and
`NativeFunction`, which writes the small functions of the runtime and of the models.

The functions of the C mathematical library that object code may call.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias

from tensorwright.base import DType

Lines: TypeAlias = "list[str | Lines]"
Branch: TypeAlias = AbstractContextManager[Callable[[], AbstractContextManager[None]]]
"""A block that runs if a condition holds; entering it gives what opens the block for "else"."""

_SUFFIX = {"float": "f32", "double": "f64", "half": "f16"}


def vector_type(element: str, lanes: int) -> str:
    """LLVM's name of a vector; one lane is a scalar."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


def float_literal(value: float, dtype: DType) -> str:
    """A float constant as LLVM writes it exactly: rounded to the type, then the bits of the f64."""
    if dtype is DType.F32:
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def splat_literal(element: str, literal: str, lanes: int) -> str:
    """A constant in every lane."""
    return literal if lanes == 1 else f"splat ({element} {literal})"


def mangled(element: str, lanes: int) -> str:
    """The end of an intrinsic's name: "v16f32", "i64"."""
    suffix = _SUFFIX.get(element, element)
    return suffix if lanes == 1 else f"v{lanes}{suffix}"


def shuffle_text(kind: str, first: str, second: str, lanes: Sequence[int]) -> str:
    """The operation that picks lanes of two vectors, numbered through from first to second."""
    order = ", ".join(f"i32 {lane}" for lane in lanes)
    return f"shufflevector {kind} {first}, {kind} {second}, <{len(lanes)} x i32> <{order}>"


class Module:
    """What the functions of one module share: declarations and definitions, each once.

    ending   lines that stand after all of them
    """

    def __init__(self, ending: tuple[str, ...] = ()) -> None:
        self.declarations: dict[str, None] = {}
        self.definitions: dict[str, str] = {}
        self._ending = ending

    def declare(self, line: str) -> None:
        """Add a declaration unless it is there."""
        self.declarations[line] = None

    def define(self, key: str, text: str, declarations: Iterable[str] = ()) -> None:
        """Add a function with the declarations that it needs, unless its key is there."""
        if key not in self.definitions:
            self.definitions[key] = text
            for line in declarations:
                self.declare(line)

    def text(self) -> str:
        """The whole module."""
        return "\n".join((*self.declarations, *self.definitions.values(), *self._ending, ""))


class FunctionText:
    """One function while it is written, front to back; mutable.

    head    the text before its body; it differs from that of all others of the module
    block   the label of the block that is written
    """

    def __init__(self, module: Module, head: str) -> None:
        self.module = module
        self.head = head
        self.allocas: list[str] = []
        self.lines: Lines = []
        self.block = "entry"
        self._count = 0

    def fresh(self) -> str:
        """A new name."""
        self._count += 1
        return f"%v{self._count}"

    def label(self) -> str:
        """A new block name."""
        self._count += 1
        return f"b{self._count}"

    def effect(self, line: str) -> None:
        """Append an instruction without a result."""
        self.lines.append("  " + line)

    def emit(self, operation: str) -> str:
        """Append an operation here and return the name of its result."""
        name = self.fresh()
        self.lines.append(f"  {name} = {operation}")
        return name

    def alloca(self, kind: str, align: int) -> str:
        """Memory on the stack, for the whole call."""
        name = self.fresh()
        self.allocas.append(f"  {name} = alloca {kind}, align {align}")
        return name

    def call_text(
        self, result: str, symbol: str, *arguments: tuple[str, str], note: str = ""
    ) -> str:
        """A call of a function from outside, which is declared; arguments are (type, name).

        note   what LLVM is told about the function; about an argument, its type may say "immarg"
        """
        kinds = ", ".join(kind for kind, _ in arguments)
        self.module.declare(f"declare {result} @{symbol}({kinds}) {note}".rstrip())
        typed = ", ".join(f"{kind.removesuffix(' immarg')} {name}" for kind, name in arguments)
        return f"call {result} @{symbol}({typed})"

    def start(self, label: str) -> None:
        """Open a block."""
        self.lines.append(f"{label}:")
        self.block = label

    @contextmanager
    def branch_on(self, truth: str) -> Iterator[Callable[[], AbstractContextManager[None]]]:
        """A block that runs if a truth ("i1") holds.

        The block's value, called directly after the block, opens the block for "else".
        """
        then, other = self.label(), self.label()
        self.effect(f"br i1 {truth}, label %{then}, label %{other}")
        self.start(then)
        jump: Lines = [f"  br label %{other}"]

        @contextmanager
        def otherwise() -> Iterator[None]:
            after = self.label()
            jump[0] = f"  br label %{after}"
            yield
            self.effect(f"br label %{after}")
            self.start(after)

        yield otherwise
        self.lines.append(jump)
        self.start(other)

    def close(self, result: str = "void") -> str:
        """Return a typed result; the text of the function."""
        self.effect(f"ret {result}")
        return "\n".join((f"{self.head} {{", "entry:", *self.allocas, *flat(self.lines), "}\n"))

    def finish(self) -> None:
        """Close the function with a return and add it to the module."""
        self.module.definitions[self.head] = self.close()


def flat(lines: Lines) -> list[str]:
    """All lines in order."""
    result: list[str] = []
    _flatten(lines, result)
    return result


def _flatten(lines: Lines, into: list[str]) -> None:
    for line in lines:
        if isinstance(line, str):
            into.append(line)
        else:
            _flatten(line, into)


LIBM_UNARY = (
    *("sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "asinh", "acosh", "atanh"),
    *("exp2", "log2", "log10", "cbrt", "erf", "erfc", "tgamma", "lgamma"),
)
LIBM_BINARY = ("pow", "atan2", "fmod", "hypot", "remainder")

LIBM_SYMBOLS: tuple[str, ...] = tuple(
    name + suffix
    for name in (*LIBM_UNARY, *LIBM_BINARY, "fma", "roundeven", "sincos")
    for suffix in ("", "f")
)
"""Symbols of the C library that object code may need from the loader ("sin", "sinf", ...).

LLVM itself calls fma and roundeven where the target has no such instruction, and sincos for the
sine and the cosine of one number.
"""
