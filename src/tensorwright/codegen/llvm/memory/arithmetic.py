"""Arithmetic of index values in LLVM's text.

The names of a `Linear` are SSA values of type i64; those in `Function.vectors` are of
<lanes x i64>.
"""

from __future__ import annotations

from tensorwright.codegen.analysis.linear import (
    Linear,
    Terms,
    combine,
    linear_range,
    scaled,
)
from tensorwright.codegen.llvm.text.builder import Function
from tensorwright.machine_code import splat_literal

_I32 = 1 << 31


class Arithmetic:
    """Index arithmetic in one function, at a number of lanes that the vector loops set."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.lanes = 1
        self.active = 1  # lanes below this one are real, the others are padding

    def is_uniform(self, value: Linear) -> bool:
        """Whether all lanes have one value."""
        return not value.step and not self.vector_terms(value)

    def vector_terms(self, value: Linear) -> Terms:
        """The terms that differ by lane."""
        vectors = self.function.vectors
        if not vectors:
            return ()
        return tuple(term for term in value.terms if term[0] in vectors)

    def range_of(self, value: Linear, lanes: int = 0) -> tuple[int, int] | None:
        """Inclusive bounds over the real lanes (or over `lanes`), or None."""
        return linear_range(value, lanes or self.active, self.function.ranges)

    def scalar(self, value: Linear) -> str:
        """A uniform value as an i64."""
        total = self.sum_of(value.terms)
        if not total:
            return str(value.const)
        if not value.const:
            return total
        return self.function.pure(f"add nsw i64 {total}, {value.const}", total)

    def outer_first(self, terms: Terms) -> Terms:
        """The terms from the outermost scope to the innermost; in each its loop's index first."""
        if len(terms) < 2:
            return terms
        depth, scopes = self.function.depth, self.function.scopes

        def key(term: tuple[str, int]) -> tuple[int, bool]:
            level = depth.get(term[0], 0)
            return level, scopes[level].index != term[0]

        return tuple(sorted(terms, key=key))

    def sum_of(self, terms: Terms) -> str:
        """The sum of uniform terms as an i64, outer variables first; "" for none."""
        function = self.function
        total = ""
        for name, coefficient in self.outer_first(terms):
            part = name
            if coefficient != 1:
                part = function.pure(f"mul nsw i64 {name}, {coefficient}", name)
            total = function.pure(f"add nsw i64 {total}, {part}", total, part) if total else part
        return total

    def vector(self, value: Linear) -> tuple[str, int]:
        """The value of every lane as a vector, and the bits of its elements: 32 if enough."""
        bounds = self.range_of(value, self.lanes)
        bits = 32 if bounds is not None and bounds[0] >= -_I32 and bounds[1] < _I32 else 64
        return self.vector_of(value, bits), bits

    def vector_of(self, value: Linear, bits: int) -> str:
        """The value of every lane as a vector of elements of `bits` bits (wrapping)."""
        varying = self.vector_terms(value)
        function, lanes, element = self.function, self.lanes, f"i{bits}"
        kind = f"<{lanes} x {element}>"
        total = "<" + ", ".join(f"{element} {value.step * k}" for k in range(lanes)) + ">"
        if not value.step:
            total = ""
        uniform = Linear(value.const, tuple(t for t in value.terms if t not in varying))
        if uniform.terms or uniform.const or not (total or varying):
            base = self.scalar(uniform)
            if bits == 32:
                base = self.narrowed(base, "i64", "i32")
            base = function.splat_name(element, base, lanes)
            total = function.pure(f"add {kind} {base}, {total}", base) if total else base
        for name, coefficient in varying:
            part = name
            if bits == 32:
                part = self.narrowed(name, f"<{lanes} x i64>", kind)
            if coefficient != 1:
                factor = splat_literal(element, str(coefficient), lanes)
                part = function.pure(f"mul {kind} {part}, {factor}", part)
            total = function.pure(f"add {kind} {total}, {part}", total, part) if total else part
        return total

    def narrowed(self, name: str, wide: str, narrow: str) -> str:
        """Truncate an integer; a number stays."""
        if name.lstrip("-").isdigit():
            return name
        return self.function.pure(f"trunc {wide} {name} to {narrow}", name)

    def atom(self, name: str, bounds: tuple[int, int] | None, *, varies: bool) -> Linear:
        """A computed value as a term."""
        if bounds is not None:
            self.function.ranges[name] = bounds
        if varies:
            self.function.vectors.add(name)
        return Linear(0, ((name, 1),))

    def binary(self, operation: str, left: Linear, right: Linear) -> tuple[str, bool]:
        """An i64 operation on two values; the result's name and whether it differs by lane."""
        if self.is_uniform(left) and self.is_uniform(right):
            a, b = self.scalar(left), self.scalar(right)
            return self.function.pure(f"{operation} i64 {a}, {b}", a, b), False
        a, b = self.vector_of(left, 64), self.vector_of(right, 64)
        return self.function.pure(f"{operation} <{self.lanes} x i64> {a}, {b}", a, b), True

    def quotient(self, value: Linear, divisor: int, bounds: tuple[int, int] | None) -> Linear:
        """floor(value / divisor) for a positive divisor."""
        power = divisor.bit_length() - 1
        limits = None if bounds is None else (bounds[0] // divisor, bounds[1] // divisor)
        if divisor == 1 << power:
            name, varies = self.binary("ashr", value, Linear(power))
        elif bounds is not None and bounds[0] >= 0:
            name, varies = self.binary("udiv", value, Linear(divisor))
        else:  # round down: lower a negative dividend by divisor - 1
            sign, varies = self.binary("ashr", value, Linear(63))
            signs = self.atom(sign, (-1, 0), varies=varies)
            low, varies = self.binary("and", signs, Linear(divisor - 1))
            lower = self.atom(low, (0, divisor - 1), varies=varies)
            name, varies = self.binary("sdiv", combine(value, lower, -1), Linear(divisor))
        return self.atom(name, limits, varies=varies)

    def quotient_by(self, value: Linear, divisor: Linear) -> Linear:
        """floor(value / divisor) for a positive divisor that is known when the kernel runs."""
        bounds = self.range_of(value)
        if bounds is not None and bounds[0] >= 0:
            name, varies = self.binary("udiv", value, divisor)
            return self.atom(name, (0, bounds[1]), varies=varies)
        # round down: a negative dividend, less by divisor - 1
        sign, varies = self.binary("ashr", value, Linear(63))
        signs = self.atom(sign, (-1, 0), varies=varies)
        low, varies = self.binary("and", signs, combine(divisor, Linear(-1)))
        name, varies = self.binary(
            "sdiv", combine(value, self.atom(low, None, varies=varies), -1), divisor
        )
        return self.atom(name, bounds, varies=varies)

    def remainder(self, value: Linear, divisor: int, bounds: tuple[int, int] | None) -> Linear:
        """value - divisor * floor(value / divisor) for a positive divisor."""
        if divisor & (divisor - 1) == 0:
            name, varies = self.binary("and", value, Linear(divisor - 1))
        else:
            whole = self.quotient(value, divisor, bounds)
            name, varies = self.binary("sub", value, scaled(whole, divisor))
        return self.atom(name, (0, divisor - 1), varies=varies)
