"""What every stage says of a tensor: its type, its arrays, what it is to the caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright.base.dtypes import DType
from tensorwright.base.errors import UnsupportedError


class OpenSize:
    """A size that is not a number before the network runs.

    Base of the index expressions of `tensorwright.expr`, which say what it is and have arithmetic.
    """

    __slots__ = ()

    @property
    def is_size(self) -> bool:
        """Whether it consists of named sizes and numbers alone."""
        return True


class UndecidedError(UnsupportedError):
    """A question whose answer depends on a named size. Callers that can do without it catch this.

    needs   the bounds of a size for which the answer is yes, "sequence=..512"; "" where it is not
            one size that decides
    names   of the sizes on which the answer depends
    """

    field_names = (*UnsupportedError.field_names, "needs", "names")

    def __init__(
        self,
        *,
        stage: str,
        where: str,
        reason: str,
        remedy: str = "",
        operator: str = "",
        needs: str = "",
        names: tuple[str, ...] = (),
    ) -> None:
        super().__init__(stage=stage, where=where, reason=reason, remedy=remedy, operator=operator)
        self.needs = needs
        self.names = tuple(names)  # what has travelled as JSON is a list


Shape: TypeAlias = tuple[int | OpenSize, ...]
AttributeValue: TypeAlias = (
    int | float | str | bool | DType | OpenSize | tuple["AttributeValue", ...]
)
Attributes: TypeAlias = Mapping[str, AttributeValue]
Array: TypeAlias = NDArray[np.generic]
HostFunction: TypeAlias = Callable[[tuple[Array, ...], Attributes], tuple[Array, ...]]


@dataclass(frozen=True, slots=True)
class TensorType:
    """The type of a tensor: element type and shape, which may have named sizes."""

    dtype: DType
    shape: Shape

    @property
    def is_open(self) -> bool:
        """Whether some extent is not a number yet."""
        return any(isinstance(extent, OpenSize) for extent in self.shape)

    @property
    def extents(self) -> tuple[int, ...]:
        """The shape as numbers.

        Raises:  UndecidedError where an extent is a named size.
        """
        numbers = tuple(extent for extent in self.shape if isinstance(extent, int))
        if len(numbers) != len(self.shape):
            raise UndecidedError(
                stage="sizes",
                where=f"a tensor of type {self}",
                reason=f"the extents of {self} are not all numbers, which are needed here",
                remedy="give a number for each named size",
            )
        return numbers

    @property
    def size_bytes(self) -> int:
        """Bytes of the dense tensor."""
        return prod(self.extents) * self.dtype.size_bytes

    def __str__(self) -> str:
        return f"{self.dtype}({', '.join(map(str, self.shape))})"


class Role(Enum):
    """The role of a parameter for the caller."""

    INPUT = "in"
    CONSTANT = "const"  # known when the program is built: may be packed
    OUTPUT = "out"
