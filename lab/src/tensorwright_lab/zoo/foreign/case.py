"""Cases of the corpus of foreign files: a graph, the sizes of its calls, and what they give."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import onnx

from tensorwright.base import Array

FEATURES = 8  # of the rows of classical models
Dimension: TypeAlias = int | str
Sizes: TypeAlias = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Size:
    """The numbers that calls give an open dimension: multiples of `by` from `least` to `most`."""

    least: int = 0
    most: int = 9
    by: int = 1

    def draw(self, chance: random.Random) -> int:
        """One of the numbers."""
        return self.by * chance.randint(-(-self.least // self.by), self.most // self.by)

    @property
    def example(self) -> int:
        """The number with which a network is exported: large enough for every window."""
        return self.most // self.by * self.by


@dataclass(frozen=True, slots=True)
class Given:
    """An input: its name, its shape with the names of open dimensions, and what it holds.

    values   normal: numbers around 0; ids: whole numbers below `below`; bool; lengths: from 1 to
             `below`, falling, the first of them `below`, which may name a size
    """

    name: str
    shape: tuple[Dimension, ...]
    values: str = "normal"
    below: Dimension = 2
    dtype: str = "float32"

    def draw(self, sizes: Sizes, generator: np.random.Generator) -> Array:
        """An array for these sizes."""
        shape = tuple(number_of(each, sizes) for each in self.shape)
        most = number_of(self.below, sizes)
        match self.values:
            case "normal":
                return (0.5 * generator.standard_normal(shape)).astype(self.dtype)
            case "ids":
                return generator.integers(0, max(most, 1), shape).astype(np.int64)
            case "bool":
                return np.asarray(generator.random(shape) < 0.6)
            case _:
                drawn = np.sort(generator.integers(1, max(most, 1) + 1, shape))[::-1]
                drawn[:1] = most
                return np.ascontiguousarray(drawn).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Case:
    """One graph: who writes it, and how it is called."""

    family: str
    name: str
    exporter: str
    inputs: tuple[Given, ...]
    sizes: Mapping[str, Size]
    build: Callable[[], onnx.ModelProto]

    @property
    def title(self) -> str:
        """The name by which a report shows it."""
        return f"{self.family}/{self.name} ({self.exporter})"

    @property
    def tolerance(self) -> float:
        """How far results may be apart, of the greatest magnitude.

        Where activations are bytes, numbers in the middle between two bytes are rounded either way.
        """
        return 0.05 if self.exporter.endswith(("+qdq", "+operators")) else 2e-4

    def points(self, seed: int, count: int = 5) -> tuple[dict[str, int], ...]:
        """Sizes of so many calls: all 1 or the least, one of them 0, and random ones."""
        chance = random.Random(f"{self.family} {self.name} {seed}")
        points = [
            {name: size.draw(chance) for name, size in self.sizes.items()} for _ in range(count)
        ]
        if self.sizes:
            points[0] = {
                name: max(size.least, size.by if size.by > 1 else 1)
                for name, size in self.sizes.items()
            }
            zero = [name for name, size in self.sizes.items() if size.least == 0]
            if zero:
                points[1][chance.choice(zero)] = 0
        return tuple(points)

    def feed(self, sizes: Sizes, seed: int) -> dict[str, Array]:
        """Arrays for a call with these sizes."""
        text = f"{self.family} {self.name} {sorted(sizes.items())} {seed}"
        generator = np.random.default_rng(zlib.crc32(text.encode()))
        return {each.name: each.draw(sizes, generator) for each in self.inputs}


def number_of(dimension: Dimension, sizes: Sizes) -> int:
    """The number of a dimension: `3`, `time`, `past+time`, `2*rows`."""
    if isinstance(dimension, int):
        return dimension
    if "+" in dimension:
        return sum(number_of(part, sizes) for part in dimension.split("+"))
    if "*" in dimension:
        left, right = dimension.split("*")
        return number_of(left, sizes) * number_of(right, sizes)
    return int(dimension) if dimension.isdigit() else sizes[dimension]
