"""The record of an algorithm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tensorwright.expr import Compute


@dataclass(frozen=True, slots=True)
class Algorithm:
    """Another tensor expression for what a tensor means.

    name     what a trace calls it
    rewrite  the tensor by this algorithm, or None where it does not apply: a tensor of the same
             name and axes, whose new intermediate tensors are called <name>_...; the operands stay
             the same
    rounds   whether it rounds otherwise; else the same terms are multiplied and summed
    """

    name: str
    rewrite: Callable[[Compute], Compute | None]
    rounds: bool = True
