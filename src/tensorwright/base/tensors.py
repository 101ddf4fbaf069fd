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

AttributeValue: TypeAlias = int | float | str | bool | DType | tuple["AttributeValue", ...]
Attributes: TypeAlias = Mapping[str, AttributeValue]
Array: TypeAlias = NDArray[np.generic]
HostFunction: TypeAlias = Callable[[tuple[Array, ...], Attributes], tuple[Array, ...]]


@dataclass(frozen=True, slots=True)
class TensorType:
    """The static type of a tensor: element type and shape."""

    dtype: DType
    shape: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of the dense tensor."""
        return prod(self.shape) * self.dtype.size_bytes

    def __str__(self) -> str:
        return f"{self.dtype}({', '.join(map(str, self.shape))})"


class Role(Enum):
    """What a parameter is to the caller."""

    INPUT = "in"
    CONSTANT = "const"  # known when the program is built: may be packed
    OUTPUT = "out"
