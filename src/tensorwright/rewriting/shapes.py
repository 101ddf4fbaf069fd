"""Shapes of terms: one rule per operator, for integers and for sizes that are expressions.

    operator_named("relu").result((), ((2, 3),), needs)             (2, 3)
    matmul at (2, 3), (4, 5)                                        Misfit: 3 is not 4
    matmul at (x.0, x.1), (y.0, y.1)    (x.0, y.1), and needs.facts has x.1 = y.0

A shape rule computes with sizes and states what it needs through `Needs`: for integers the need
is checked at once, for expressions it becomes a fact that the shapes must satisfy.  It raises
IllTyped where there is no such term.  `RewriteOperator.result` and `meaning.infer` return a value
instead, the shape or a Misfit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from tensorwright.base import InternalError
from tensorwright.rewriting.dims import Shape, Size
from tensorwright.rewriting.terms import AtLeast, Divides, Equal, Fact, Param


class IllTyped(Exception):
    """The error of a shape rule where the shapes do not fit the operator; the text says why."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """The answer that there is no such term, and why."""

    reason: str


Answer = TypeVar("Answer")


def fitting(answer: Answer | Misfit) -> Answer:
    """The answer for terms that are known to fit.

    Raises:  InternalError where they do not; a caller that is not sure compares with Misfit.
    """
    if isinstance(answer, Misfit):
        raise InternalError(
            stage="rules", where="terms that are known to fit", reason=answer.reason
        )
    return answer


class Needs:
    """Checks what can be decided, and keeps the rest as facts, in order, each once."""

    def __init__(self) -> None:
        self._facts: dict[Fact, None] = {}
        self._choices: dict[tuple[Size, Size], None] = {}

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts that the shapes must satisfy besides."""
        return tuple(self._facts)

    @property
    def choices(self) -> tuple[tuple[Size, Size], ...]:
        """(own, wanted) sizes: the first is 1, or equal to the second."""
        return tuple(self._choices)

    def hold(self, decision: bool, reason: str) -> None:
        """Refuse where something that does not depend on sizes is wrong."""
        if not decision:
            raise IllTyped(reason)

    def rank(self, shape: Shape, *ranks: int) -> None:
        """Refuse other ranks."""
        self.hold(len(shape) in ranks, f"rank {len(shape)}")

    def equal(self, left: Size, right: Size) -> None:
        """Two sizes must be equal."""
        difference = left - right
        if isinstance(difference, int):
            self.hold(difference == 0, f"{left} is not {right}")
        else:
            self._facts.setdefault(Equal(left, right))

    def equal_shapes(self, left: Sequence[Size], right: Sequence[Size]) -> None:
        """Two shapes must be equal."""
        self.hold(len(left) == len(right), "ranks differ")
        for a, b in zip(left, right, strict=True):
            self.equal(a, b)

    def at_least(self, left: Size, right: Size) -> None:
        """`left >= right` must hold."""
        difference = left - right
        if isinstance(difference, int):
            self.hold(difference >= 0, f"{left} is less than {right}")
        else:
            self._facts.setdefault(AtLeast(left, right))

    def stretches(self, own: Size, wanted: Size) -> None:
        """`own` is 1 or `wanted`: what can be broadcast."""
        if own in (1, wanted):
            return
        if isinstance(own, int) and isinstance(wanted, int):
            raise IllTyped(f"{own} cannot be stretched to {wanted}")
        self._choices.setdefault((own, wanted))

    def divides(self, divisor: Size, number: Size) -> None:
        """`divisor` must divide `number`."""
        if isinstance(divisor, int) and isinstance(number, int):
            self.hold(number % divisor == 0, f"{divisor} does not divide {number}")
        elif divisor not in (1, number):
            self._facts.setdefault(Divides(divisor, number))


Params: TypeAlias = tuple[Param, ...]
Shapes: TypeAlias = tuple[Shape, ...]
ShapeRule: TypeAlias = Callable[[Params, Shapes, Needs], Shape]
"""The shape of an application from parameters and shapes of arguments; raises IllTyped."""
