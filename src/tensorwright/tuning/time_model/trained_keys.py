"""Which workloads a time model was trained on: those that judge it must be others.

A key is 16 hexadecimal digits; its first 8 are kept as a number. Of other workloads one in 600,000
is then taken for one of 7,000, and passed over in vain.
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
        """What `steps` was taken of."""
        return cls(np.cumsum(steps, dtype=np.uint32))

    @property
    def steps(self) -> NDArray[np.uint32]:
        """How far each number is from the one before it: less to write, when compressed."""
        return np.diff(self.numbers, prepend=np.uint32(0))

    def __contains__(self, key: str) -> bool:
        number = _number(key)
        place = int(np.searchsorted(self.numbers, number))
        return place < len(self.numbers) and int(self.numbers[place]) == number

    def __len__(self) -> int:
        return len(self.numbers)


def _number(key: str) -> int:
    return int(key[:_DIGITS], 16)
