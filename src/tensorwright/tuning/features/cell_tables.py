"""Tables of numbers and columns, into which the results of a program are entered."""

from __future__ import annotations

from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright.tuning.features.columns import Cell, Column

Features: TypeAlias = NDArray[np.float32]


class ResultNumbers(dict[Column, int]):
    """The columns that a plan needs, each with its number."""

    def __missing__(self, column: Column) -> int:
        self[column] = len(self)
        return self[column]


class CellTable:
    """Numbers that are the same for all candidates, and the offsets of columns among them."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.numbers = np.zeros(prod(shape), np.float32)
        self.offsets: list[int] = []
        self.results: list[int] = []

    def put(self, offset: int, cell: Cell, results: ResultNumbers) -> None:
        """Enter a number or a column at an offset in the row-major table."""
        if isinstance(cell, Column):
            self.offsets.append(offset)
            self.results.append(results[cell])
        elif cell:
            self.numbers[offset] = cell

    def filled(self, results: NDArray[np.float64], count: int) -> Features:
        """The table for each candidate, candidates last."""
        table = np.empty((len(self.numbers), count), np.float32)
        table[...] = self.numbers[:, None]
        table[self.offsets] = results[self.results]
        return table.reshape(*self.shape, count)
