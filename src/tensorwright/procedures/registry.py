"""Which operators have a procedure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from tensorwright.loop import LoopProgram
from tensorwright.ops import Attributes, TensorType
from tensorwright.procedures.scattering import scatter_elements, scatter_nd
from tensorwright.procedures.selection import topk

Writer: TypeAlias = Callable[[tuple[TensorType, ...], Attributes], LoopProgram | None]

_WRITERS: Mapping[str, Writer] = MappingProxyType(
    {each.__name__: each for each in (topk, scatter_elements, scatter_nd)}
)


def procedure(
    operator: str, types: tuple[TensorType, ...], attributes: Attributes
) -> LoopProgram | None:
    """The loop nest of an operator of the host; None where only NumPy has it.

    types   of its inputs     attributes   complete, as `Operator.complete` gives them
    Its parameters are the inputs, then the outputs, each with the elements in row-major order.
    """
    writer = _WRITERS.get(operator)
    return None if writer is None else writer(types, attributes)
