"""The workloads on which a time model was trained: others must judge it.

A key is 16 hexadecimal digits; its first 8 are kept as a number. With 7,000 keys, one in 600,000
other workloads is taken for one of them, and excluded needlessly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

_DIGITS = 8


@dataclass(frozen=True, slots=True, eq=False)
class TrainedKeys:
    """Keys of workloads; `key in keys` asks for one.

    numbers   their first digits, ascending
    """

    numbers: NDArray[np.uint32]

    @classmethod
    def of(cls, keys: Iterable[str]) -> Self:
        """From whole keys."""
        return cls(np.array(sorted({_number(key) for key in keys}), np.uint32))

    @classmethod
    def of_steps(cls, steps: NDArray[np.uint32]) -> Self:
        """The inverse of `steps`."""
        return cls(np.cumsum(steps, dtype=np.uint32))

    @property
    def steps(self) -> NDArray[np.uint32]:
        """The distance of each number from the one before it: smaller when compressed."""
        return np.diff(self.numbers, prepend=np.uint32(0))

    def __contains__(self, key: str) -> bool:
        number = _number(key)
        position = int(np.searchsorted(self.numbers, number))
        return position < len(self.numbers) and int(self.numbers[position]) == number

    def __len__(self) -> int:
        return len(self.numbers)


def _number(key: str) -> int:
    return int(key[:_DIGITS], 16)
