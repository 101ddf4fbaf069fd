"""Tables of numbers and columns: what a program computes is put where it belongs."""

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
    """Numbers that are the same for all candidates, and where columns go among them."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.numbers = np.zeros(prod(shape), np.float32)
        self.places: list[int] = []
        self.results: list[int] = []

    def put(self, place: int, cell: Cell, results: ResultNumbers) -> None:
        """Note what stands at a place, counted in the table as it lies in memory."""
        if isinstance(cell, Column):
            self.places.append(place)
            self.results.append(results[cell])
        elif cell:
            self.numbers[place] = cell

    def filled(self, results: NDArray[np.float64], count: int) -> Features:
        """The table for each candidate, candidates last."""
        found = np.empty((len(self.numbers), count), np.float32)
        found[...] = self.numbers[:, None]
        found[self.places] = results[self.results]
        return found.reshape(*self.shape, count)
