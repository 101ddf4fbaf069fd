"""The differences of the languages of the C family, as a record for each language.

    Dialect(name, elements, ..., vectors, grid)

The walker (`values.py`, `statements.py`) asks its dialect for every word that is not the same in
all of them.  `codegen/c`, `codegen/cuda` and `codegen/opencl` have one each.

Values as text, names and lines of a function, in any language of the C family.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tensorwright.base import DType
from tensorwright.codegen.analysis import Linear
from tensorwright.expr import Fn
from tensorwright.schedule import ForKind

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


@dataclass(frozen=True, slots=True)
class Vectors:
    """How vectors are written.

    name             of the type, from the element type and the lanes
    typedef          a definition, from the name, element type, lanes, and whether it is for any
                     place in memory; None if the language has the types
    build            a vector of lanes, with {kind} and {lanes}
    lane             what is appended to a vector for one of its lanes, with {0}, or one text a lane
    most_lanes       the longest vector; 0 if any length has a type
    has_operators    whether arithmetic, comparisons and casts work on whole vectors
    has_arithmetic   whether the arithmetic of floats does, at least
    in_memory        neighbouring elements as something that can be assigned, with {const}, {space},
                     {kind} and {at}
    has_types_anywhere   there are types of vectors at any element
    load, store      the same for neighbours at any element, as two calls with {lanes}, {at} and
                     {value}; "" if only whole vectors at multiples of their size can be accessed
    """

    name: Callable[[DType, int], str]
    typedef: Callable[[str, DType, int, bool], str] | None
    build: str
    lane: str | tuple[str, ...]
    most_lanes: int = 0
    has_operators: bool = True
    has_arithmetic: bool = True
    in_memory: str = "*({const}{kind} *)&{at}"
    has_types_anywhere: bool = False
    load: str = ""
    store: str = ""

    def lane_of(self, vector: str, lane: int) -> str:
        """One lane of a vector that has a name."""
        if isinstance(self.lane, tuple):
            return vector + self.lane[lane]
        return vector + self.lane.format(lane)

    def of_lanes(self, kind: str, lanes: Sequence[str]) -> str:
        """A vector from its lanes."""
        return self.build.format(kind=kind, lanes=", ".join(lanes))


@dataclass(frozen=True, slots=True)
class GridWords:
    """The words for grids of threads in a language of graphics processors.

    kernel          before the name of a function that the driver launches, with the threads of a
                    block, {x}, {y}, {z} and {threads}, and {groups}, ", N" for N at once
    indices         the number of this block or thread, for each kind of loop
    unroll          the line before a loop that is written out
    global_space, shared_space   before the type of what lies in such memory
    shared_declared  before the declaration of an array in shared memory, and the space of none
    align           what makes an array begin at a multiple of 16 bytes
    has_offsets     each argument is a buffer and the position of its first element there: the
                    language has no pointers on the host
    dynamic_shared  declares the memory `shared` whose size the launch says; "" if there is none
    exchange        a helper by name and text: a value of the thread at a distance
    copies          the helpers start_copy, commit_copies, wait_copies; None if there are none
    fast_functions  less exact functions of f32 that the knob `fast_math` allows
    """

    kernel: str
    indices: Mapping[ForKind, str]
    barrier: str
    unroll: str
    global_space: str
    shared_space: str
    align: str
    has_offsets: bool
    shared_declared: str = ""
    dynamic_shared: str = ""
    exchange: tuple[str, str] | None = None
    copies: Mapping[str, str] | None = None
    fast_functions: Mapping[Fn, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Dialect:
    """A language of the C family.

    elements        the type of an element in memory
    head            what stands before the first function of a file
    function        before a helper function      restrict   of a pointer that nothing aliases
    index           the integers of indices       short_index   where 32 bits are enough
    literal_64      an integer literal of 64 bits with {0}; of unsigned ones
    least           of the signed integers by their bits: no literal is negative
    greatest        of the integers, by their bits and whether they are signed
    float_suffix    ends the names of library functions of f32
    has_doubles     saturating conversions of f32 go through f64
    nan, infinity   of floats
    float_bodies    helper functions of floats that the language writes in another way
    conversions     the helpers from_f16, to_f16, from_bf16, to_bf16
    reserved        names that the language or its library has
    grid            None for a language of processors
    """

    name: str
    elements: Mapping[DType, str]
    head: str
    function: str
    restrict: str
    index: str
    short_index: str
    literal_64: tuple[str, str]
    least: Mapping[int, str]
    greatest: Mapping[tuple[int, bool], str]
    float_suffix: str
    has_doubles: bool
    conversions: Mapping[str, str]
    reserved: frozenset[str]
    vectors: Vectors
    nan: str = "NAN"
    infinity: str = "INFINITY"
    float_bodies: Mapping[Fn, str] = field(default_factory=dict)
    grid: GridWords | None = None

    def element(self, dtype: DType) -> str:
        """The type of an element in memory."""
        return self.elements[dtype]

    def value(self, dtype: DType, lanes: int = 1) -> str:
        """The type of a value while it is computed."""
        dtype = held(dtype)
        return self.elements[dtype] if lanes == 1 else self.vectors.name(dtype, lanes)

    def is_held_as_stored(self, dtype: DType) -> bool:
        """Whether a type is computed in the form that it has in memory."""
        return self.value(dtype) == self.element(dtype) and dtype is not DType.BOOL

    def literal(self, value: float | int | bool, dtype: DType) -> str:
        """A constant of a type, exactly."""
        if dtype is DType.BOOL:
            return "1" if value else "0"
        if dtype.is_float:
            return self._float_literal(float(value), dtype)
        bits = dtype.size_bytes * 8
        wrapped = int(value) & ((1 << bits) - 1)
        signed, unsigned = self.literal_64
        if not dtype.is_signed:
            return f"{wrapped}u" if bits < 64 else unsigned.format(wrapped)
        number = wrapped - (1 << bits) if wrapped >> (bits - 1) else wrapped
        if bits == 64:
            return self.least[64] if number == -(1 << 63) else signed.format(number)
        if number == -(1 << 31):
            return self.least[32]
        return f"({number})" if number < 0 else str(number)

    def _float_literal(self, number: float, dtype: DType) -> str:
        if number != number or number in (float("inf"), float("-inf")):
            name = self.nan if number != number else self.infinity
            return f"(-{name})" if number < 0 else name
        text = f"{np.float32(number)!s}f" if held(dtype) is DType.F32 else repr(number)
        return f"({text})" if text.startswith("-") else text

    def ends(self, dtype: DType) -> tuple[str, str]:
        """The least and the greatest integer of a type."""
        bits = dtype.size_bytes * 8
        return self.least[bits] if dtype.is_signed else "0", self.greatest[bits, dtype.is_signed]

    def identifier(self, name: str) -> str:
        """An identifier near a name."""
        safe = re.sub(r"\W", "_", name, flags=re.ASCII)
        if not safe or safe[0].isdigit() or safe[0] == "_" or safe in self.reserved:
            safe = f"t_{safe}"
        return safe


LIBRARY_NAMES = frozenset(
    """abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc
    exp exp2 expm1 fabs floor fma fmax fmin fmod hypot ldexp lgamma log log10 log1p log2 pow
    remainder    rint round sin sinh sqrt tan tanh tgamma trunc j0 j1 jn y0 y1 yn gamma""".split()
)
"""The names of mathematical functions of C, without the letters for their types."""
LANGUAGE_NAMES = frozenset(
    """auto break case char const continue default do double else enum extern float for goto
    if inline int long register restrict return short signed sizeof static struct switch typedef
    union unsigned void volatile while asm typeof unix linux i386 main memcpy isnan NAN INFINITY
    workspace slice args threads first stop id team floats own float_state
    set_float_state""".split()
)
"""The names that C has in all its dialects, or that the text around a kernel has."""
INTEGER_BITS = (8, 16, 32, 64)
"""The widths of integers."""
