"""What an enumeration knows after a level, as one value that a work folder keeps.

begin(preset, folder, seed)     classes of the inputs and prepared terms
save(folder, state)             after each level
restore(folder)                 the state after the last finished level, or None

The values of classes, in files: one for each shape and sample, row by row.

    store.append((2, 3), values)             row 0, the first of some
    store.take((2, 3), [0, 5], (0, 1))       (2, 2, 6): two rows, two samples
    folder/values-2x3-0.u32                  where sample 0 lies

Processes share what they read, as the system maps each file once; a search over terms of four
operators reads the second sample only of the few that its fingerprints leave.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import UsageError, output_error
from tensorwright.rewriting.meaning import evaluate_terms
from tensorwright.rewriting.operators import IntShape
from tensorwright_lab.rule_generation.enumerate.checkpoint import WorkFolder
from tensorwright_lab.rule_generation.enumerate.classes import (
    INPUT,
    MAX_OPERATORS,
    Batch,
    ClassTable,
    Kind,
)
from tensorwright_lab.rule_generation.enumerate.grouping import Equalities
from tensorwright_lab.rule_generation.enumerate.renaming import WIDTH, mix
from tensorwright_lab.rule_generation.fingerprint.field import P, packed, random_values
from tensorwright_lab.rule_generation.fingerprint.field_domain import FieldDomain, residues
from tensorwright_lab.rule_generation.fingerprint.fingerprints import keys_of
from tensorwright_lab.rule_generation.fingerprint.kernels import SAMPLES, Values
from tensorwright_lab.rule_generation.operator_facts import no_split_points
from tensorwright_lab.rule_generation.preset import Preset

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


_OF_PREPARED = 1 << 16


@dataclass(slots=True)
class State:
    """The classes, their values, and the equalities of each level; a session owns it.

    counts  the applications of each level
    """

    table: ClassTable
    store: ValueStore
    equal: list[Equalities]
    counts: list[int]


def input_values(preset: Preset, seed: int) -> tuple[Values, ...]:
    """Random values of the inputs, and what they make of the prepared terms, (1, SAMPLES, size)."""
    generator = np.random.default_rng([seed, 1])
    drawn = tuple(random_values(generator, SAMPLES, each.shape) for each in preset.inputs)
    return (*drawn, *prepared_values(preset, drawn))


def prepared_values(preset: Preset, values: Sequence[Values]) -> tuple[Values, ...]:
    """The value of each prepared term of a preset.

    Shapes:  values of the inputs, (1, samples, size) each -> the same for each prepared term
    """
    if not preset.prepared:
        return ()
    count = values[0].shape[1]
    samples = [_of_sample(preset, [each[0, at] for each in values]) for at in range(count)]
    return tuple(np.stack(each)[None] for each in zip(*samples, strict=True))


def _of_sample(preset: Preset, values: Sequence[Values]) -> list[Values]:
    inputs = {
        each.name: packed(value).reshape(each.shape)
        for each, value in zip(preset.inputs, values, strict=True)
    }
    values_of_terms = evaluate_terms(preset.prepared, inputs, FieldDomain())
    return [(residues(each).ravel() % P).astype(np.uint32) for each in values_of_terms]


def begin(preset: Preset, folder: WorkFolder, seed: int) -> State:
    """The inputs and prepared terms as classes."""
    state = State(ClassTable(), ValueStore(folder.path, {}), [], [])
    shapes, values = preset.leaf_shapes, input_values(preset, seed)
    keys = [keys_of(v, s, seed) for v, s in zip(values, shapes, strict=True)]
    rows = [state.store.append(s, v) for v, s in zip(values, shapes, strict=True)]
    count, own = len(shapes), len(preset.inputs)
    sequence = np.full((count, WIDTH), -1, np.int8)
    sequence[:own, 0] = np.arange(own)
    state.table.append(
        {
            "code": np.full(count, INPUT, np.int32),
            "cut": np.zeros(count, np.int32),
            "a": np.full(count, -1, np.int32),
            "b": np.full(count, -1, np.int32),
            "kind": _kinds(preset, state.table, shapes),
            "key": np.concatenate(keys),
            "cost": np.zeros(count, np.int8),
            "form": mix(np.full(count, 7), _groups(preset)),
            "sequence": sequence,
            "nodes": np.zeros((count, MAX_OPERATORS), np.uint64),
            "row": np.array(rows, np.int32),
        }
    )
    return state


def _kinds(preset: Preset, table: ClassTable, shapes: tuple[IntShape, ...]) -> NDArray[np.int32]:
    is_weight = [each.is_weight for each in preset.inputs] + [True] * len(preset.prepared)
    kinds = [Kind(s, no_split_points(len(s)), w) for s, w in zip(shapes, is_weight, strict=True)]
    return np.array([table.kind_number(kind) for kind in kinds], np.int32)


def _groups(preset: Preset) -> NDArray[np.int64]:
    """Inputs of one group take each other's place; a prepared term is alone in its group."""
    groups = [(each.shape, each.is_weight) for each in preset.inputs]
    numbers = [groups.index(each) for each in groups]
    return np.array([*numbers, *(_OF_PREPARED + n for n in range(len(preset.prepared)))])


def save(folder: WorkFolder, state: State) -> None:
    """Keep a state; it takes the place of an older one."""
    equal = Equalities.joined(state.equal)
    about = {
        "kinds": [[kind.shape, kind.split_points, kind.is_weight] for kind in state.table.kinds],
        "rows": [[list(shape), count] for shape, count in state.store.counts.items()],
        "counts": state.counts,
        "equal": [len(each) for each in state.equal],
    }
    arrays = _with_prefix("table_", state.table.columns())
    arrays |= _with_prefix("equal_", equal.batch.columns())
    arrays["equal_of"] = equal.of
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    folder.save("state", arrays)


def restore(folder: WorkFolder) -> State | None:
    """The state that a folder keeps, or None.

    Raises:  UsageError where files are missing or spoilt.
    """
    if not folder.has("state"):
        return None
    arrays = folder.load("state")
    about = json.loads(arrays["about"].tobytes())
    store = ValueStore(folder.path, {tuple(shape): count for shape, count in about["rows"]})
    if not store.is_whole():
        raise UsageError(
            stage="rules",
            where=f"work folder {folder.path}",
            reason="files of values are missing",
            remedy="remove the folder",
        )
    table = _table(arrays, about)
    return State(table, store, _equalities(arrays, about), list(about["counts"]))


def _table(arrays: dict[str, NDArray[Any]], about: dict[str, Any]) -> ClassTable:
    table = ClassTable()
    for shape, points, is_weight in about["kinds"]:
        table.kind_number(Kind(tuple(shape), tuple(map(tuple, points)), is_weight))
    table.append(_of_prefix("table_", arrays))
    return table


def _with_prefix(prefix: str, columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Columns by their names in files, where `cut` has an older one."""
    return {f"{prefix}{'place' if name == 'cut' else name}": a for name, a in columns.items()}


def _of_prefix(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The inverse of `_with_prefix`."""
    own = {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}
    return own | {"cut": own.pop("place")}


def _equalities(arrays: dict[str, NDArray[Any]], about: dict[str, Any]) -> list[Equalities]:
    columns = _of_prefix("equal_", arrays)
    of = columns.pop("of")
    batch = Batch(**columns)
    ends = np.cumsum(about["equal"])
    ranges = zip(ends - about["equal"], ends, strict=True)
    parts = [np.arange(low, high) for low, high in ranges]
    return [Equalities(batch.take(part), of[part]) for part in parts]
