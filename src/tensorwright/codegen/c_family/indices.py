"""Index expressions and conditions as C expressions, for one lane or for all lanes of a vector."""

from __future__ import annotations

from tensorwright.codegen.analysis import (
    IndexEvaluator,
    Linear,
    linear_range,
)
from tensorwright.codegen.c_family.helpers import Helpers
from tensorwright.codegen.c_family.text import linear_text
from tensorwright.expr import Relation

_OPERATORS = {Relation.LT: "<", Relation.LE: "<=", Relation.EQ: "==", Relation.NE: "!="}
_LONG = 60  # characters of two expressions


class VariesByLane(Exception):
    """An index is not linear in the lanes, or a condition differs by lane: go lane by lane."""


class Indices(IndexEvaluator[str]):
    """Evaluate indices; the names of a `Linear` are C expressions that bind as products."""

    def __init__(self, helpers: Helpers) -> None:
        super().__init__()
        self.helpers = helpers
        self.lanes = 1
        self.ranges: dict[str, tuple[int, int]] = {}

    def range_of(self, value: Linear, lanes: int = 0) -> tuple[int, int] | None:
        """Inclusive bounds over the lanes, or None."""
        return linear_range(value, lanes or self.lanes, self.ranges)

    def product(self, left: Linear, right: Linear) -> Linear:
        """left * right."""
        return self._named(f"({self.sum(left)}) * ({self.sum(right)})")

    def quotient(self, value: Linear, divisor: int, bounds: tuple[int, int] | None) -> Linear:
        """floor(value / divisor)."""
        limits = None if bounds is None else (bounds[0] // divisor, bounds[1] // divisor)
        if bounds is not None and bounds[0] >= 0:
            return self._named(f"({self.sum(value)}) / {divisor}", limits)
        text = f"{self.helpers.floor_div()}({self.sum(value)}, {divisor})"
        return self._named(text, limits)

    def quotient_by(self, value: Linear, divisor: Linear) -> Linear:
        """floor(value / divisor) for a positive divisor that is known when the kernel runs."""
        bounds = self.range_of(value)
        if bounds is not None and bounds[0] >= 0:
            return self._named(f"({self.sum(value)}) / ({self.sum(divisor)})", (0, bounds[1]))
        text = f"{self.helpers.floor_div()}({self.sum(value)}, {self.sum(divisor)})"
        return self._named(text, bounds)

    def remainder(self, value: Linear, divisor: int, bounds: tuple[int, int] | None) -> Linear:
        """value - divisor * floor(value / divisor)."""
        limits = (0, divisor - 1)
        if bounds is not None and bounds[0] >= 0:
            return self._named(f"({self.sum(value)}) % {divisor}", limits)
        whole = f"{self.helpers.floor_div()}({self.sum(value)}, {divisor})"
        return self._named(f"({self.sum(value)}) - {divisor} * {whole}", limits)

    def extreme(
        self, left: Linear, right: Linear, bounds: tuple[int, int] | None, *, is_min: bool
    ) -> Linear:
        """The smaller or the larger of two values."""
        a, b = self.sum(left), self.sum(right)
        if len(a) + len(b) > _LONG:  # written twice, nested ones would grow exponentially
            return self._named(f"{self.helpers.extreme(is_min=is_min)}({a}, {b})", bounds)
        return self._named(f"({a} {'<' if is_min else '>'} {b} ? {a} : {b})", bounds)

    def _named(self, text: str, limits: tuple[int, int] | None = None) -> Linear:
        name = f"({text})"
        if limits is not None:
            self.ranges[name] = limits
        return Linear(0, ((name, 1),))

    def sum(self, value: Linear) -> str:
        """A value that all lanes share, as a C expression; VariesByLane if they do not."""
        if value.step:
            raise VariesByLane
        return linear_text(value)

    def compared(self, relation: Relation, gap: Linear) -> str:
        """Whether gap <relation> 0; VariesByLane where lanes decide it differently."""
        return f"({self.sum(gap._replace(const=0))} {_OPERATORS[relation]} {-gap.const})"

    def joined(self, left: str, right: str, *, is_and: bool) -> str:
        """Whether both hold, or one of them."""
        return f"({left} {'&&' if is_and else '||'} {right})"

    def inverted(self, mask: str) -> str:
        """Whether it does not hold."""
        return f"(!{mask})"
