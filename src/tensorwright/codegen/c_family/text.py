"""Values as text, names and lines of a function, in any language of the C family."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tensorwright.base import DType
from tensorwright.codegen.analysis import Linear

_WORD = re.compile(r"[A-Za-z_]\w*|[0-9][\w.]*")


class Val(NamedTuple):
    """A value: a C expression of one lane, or of a vector of lanes."""

    text: str
    dtype: DType
    lanes: int = 1

    @property
    def is_simple(self) -> bool:
        """Whether it is a name or a number, which may be written twice."""
        return _WORD.fullmatch(self.text) is not None


def held(dtype: DType) -> DType:
    """The type in which a value is computed: 16-bit floats are in f32."""
    return DType.F32 if dtype in (DType.F16, DType.BF16) else dtype


def mask_dtype(dtype: DType) -> DType:
    """The integers that a comparison of vectors gives: as wide as what is compared."""
    return {1: DType.I8, 2: DType.I16, 4: DType.I32, 8: DType.I64}[held(dtype).size_bytes]


def unsigned_dtype(dtype: DType) -> DType:
    """The unsigned integers of the same width."""
    return {1: DType.U8, 2: DType.U16, 4: DType.U32, 8: DType.U64}[dtype.size_bytes]


def linear_text(value: Linear) -> str:
    """A uniform index value as an expression that binds as a sum."""
    parts = [f"{'-' if c < 0 else '+'} {_scaled(n, abs(c))}" for n, c in value.terms]
    if value.const or not parts:
        parts.append(f"{'-' if value.const < 0 else '+'} {abs(value.const)}")
    text = " ".join(parts)
    return text.removeprefix("+ ") if text.startswith("+") else f"-{text.removeprefix('- ')}"


def _scaled(name: str, coefficient: int) -> str:
    return name if coefficient == 1 else f"{name} * {coefficient}"


class Names:
    """Gives each thing of one function an identifier of its own; mutable.

    identifier   what makes a name legal in the language
    """

    def __init__(self, identifier: Callable[[str], str]) -> None:
        self._identifier = identifier
        self._used: set[str] = set()

    def fresh(self, name: str) -> str:
        """An unused identifier near a name."""
        base = self._identifier(name)
        candidate, number = base, 1
        while candidate in self._used:
            number += 1
            candidate = f"{base}_{number}"
        self._used.add(candidate)
        return candidate


class Lines:
    """The lines of one function while it is written; mutable."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 1

    def add(self, line: str) -> None:
        """Append a line."""
        self.lines.append("    " * self.depth + line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Put the lines that are appended inside into braces after a head."""
        self.add(f"{head} {{".lstrip())
        self.depth += 1
        yield
        self.depth -= 1
        self.add("}")
