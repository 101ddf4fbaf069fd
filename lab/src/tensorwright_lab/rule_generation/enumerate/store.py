"""The values of classes, in files: one for each shape and sample, row by row.

    store.append((2, 3), values)             row 0, the first of some
    store.take((2, 3), [0, 5], (0, 1))       (2, 2, 6): two rows, two samples
    folder/values-2x3-0.u32                  where sample 0 lies

Processes share what they read, as the system maps each file once; a search over terms of four
operators reads the second sample only of the few that its fingerprints leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import output_error
from tensorwright.rewriting.operators import IntShape
from tensorwright_lab.rule_generation.fingerprint.kernels import SAMPLES, Values

Counts = dict[IntShape, int]
_BYTES = 4


class ValueStore:
    """Values (rows, samples, size) of each shape; who appends is the only one to do so."""

    def __init__(self, folder: Path, counts: Counts) -> None:
        self.folder = folder
        self.counts = dict(counts)
        self._maps: dict[tuple[IntShape, int], NDArray[np.uint32]] = {}

    def __reduce__(self) -> tuple[type[ValueStore], tuple[Path, Counts]]:
        return ValueStore, (self.folder, self.counts)

    def _path(self, shape: IntShape, sample: int) -> Path:
        name = "x".join(map(str, shape)) or "scalar"
        return self.folder / f"values-{name}-{sample}.u32"

    def append(self, shape: IntShape, values: Values) -> int:
        """Keep more values of a shape; the row of the first.

        Raises:  OutputError for a full disk and the like.
        """
        first = self.counts.get(shape, 0)
        size = prod(shape)
        for sample in range(SAMPLES):
            path = self._path(shape, sample)
            try:
                with path.open("r+b" if first else "wb") as file:
                    file.seek(first * size * _BYTES)
                    file.truncate()
                    file.write(np.ascontiguousarray(values[:, sample], np.uint32).data)
            except OSError as error:
                raise output_error(path, error) from error
            self._maps.pop((shape, sample), None)
        self.counts[shape] = first + len(values)
        return first

    def take(self, shape: IntShape, rows: NDArray[Any], samples: Sequence[int]) -> Values:
        """The values at some rows, (rows, samples, size)."""
        if len(rows) and bool((np.diff(rows) == 1).all()):
            chosen: Any = slice(int(rows[0]), int(rows[-1]) + 1)
        else:
            chosen = rows
        return np.stack([self._map(shape, sample)[chosen] for sample in samples], axis=1)

    def _map(self, shape: IntShape, sample: int) -> NDArray[np.uint32]:
        """The rows of one file."""
        if (shape, sample) not in self._maps:
            full = (self.counts.get(shape, 0), prod(shape))
            values: NDArray[np.uint32] = np.zeros(full, np.uint32)
            if full[0]:
                path = self._path(shape, sample)
                values = np.memmap(path, np.uint32, "r", shape=full)
            self._maps[shape, sample] = values
        return self._maps[shape, sample]

    @property
    def nbytes(self) -> int:
        """Bytes of all values."""
        sizes = (count * prod(shape) for shape, count in self.counts.items())
        return SAMPLES * _BYTES * sum(sizes)

    def is_whole(self) -> bool:
        """Whether the files hold all rows."""
        return all(
            self._path(shape, sample).is_file()
            and self._path(shape, sample).stat().st_size >= count * prod(shape) * _BYTES
            for shape, count in self.counts.items()
            for sample in range(SAMPLES)
        )
