"""A folder that keeps what an enumeration has found, so that a later run can go on with it.

    run.json        what is enumerated: a run goes on only where it would do the very same
    state.npz       the classes and equalities of all finished levels
    values-*.u32    the values of the classes
    *.unit          what units of work gave: JSON and bytes

Each file is written whole or not at all, and holds numbers and text only.

The units of a level: what the work folder keeps is not done again.

units = LevelUnits(folder, farm, say, level=3)
names = units.complete("words", shards, efforts)       words-3-0, words-3-1, ...
folder.unit(names[0])                                  what the first one gave
"""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import UsageError, atomic_writer, make_folder, output_error, write_atomically
from tensorwright.farm import Farm, Payload, Unit
from tensorwright_lab.rule_generation.answers import CALLER, Meter, Say, answers

_OWN = ("run.json", "*.npz", "values-*.u32", "*.unit")
_LENGTH = struct.Struct("<I")
Arrays = dict[str, NDArray[Any]]


class WorkFolder:
    """The files of one enumeration.

    Raises:  UsageError where the folder holds other things or another run; OutputError where it
             cannot be written.
    """

    def __init__(self, path: Path, run: Mapping[str, Any]) -> None:
        self.path = make_folder(path)
        text = json.dumps(dict(run), indent=1, sort_keys=True)
        mark = path / "run.json"
        if mark.is_file():
            if mark.read_text(encoding="utf-8") != text:
                raise self._error(
                    "it keeps another run", "the same preset, size and seed, or another folder"
                )
            return
        if any(path.iterdir()):
            raise self._error("it holds files of something else", "name an empty or a new folder")
        write_atomically(mark, text)

    def _error(self, reason: str, remedy: str) -> UsageError:
        return UsageError(
            stage="rules", where=f"work folder {self.path}", reason=reason, remedy=remedy
        )

    def has(self, name: str) -> bool:
        """Whether arrays of this name are kept."""
        return (self.path / f"{name}.npz").is_file()

    def save(self, name: str, arrays: Arrays) -> None:
        """Keep arrays under a name."""
        with atomic_writer(self.path / f"{name}.npz") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]

    def load(self, name: str) -> Arrays:
        """The arrays of a name.

        Raises:  UsageError where they cannot be read.
        """
        try:
            return load_arrays(self.path / f"{name}.npz")
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            raise self._unreadable(f"{name}.npz", error) from error

    def has_unit(self, name: str) -> bool:
        """Whether the result of a unit is kept."""
        return self._unit(name).is_file()

    def save_unit(self, name: str, result: Payload) -> None:
        """Keep the result of a unit under a name."""
        sizes = [len(blob) for blob in result.blobs]
        head = json.dumps([result.data, sizes]).encode()
        with atomic_writer(self._unit(name)) as file:
            file.write(_LENGTH.pack(len(head)) + head)
            for blob in result.blobs:
                file.write(blob)

    def unit(self, name: str, blobs: Sequence[int] | None = None) -> Payload:
        """The result of a unit, or some blobs of it.

        Raises:  UsageError where it cannot be read.
        """
        try:
            with self._unit(name).open("rb") as file:
                (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
                data, sizes = json.loads(file.read(length))
                starts = [_LENGTH.size + length, *sizes]
                chosen = range(len(sizes)) if blobs is None else blobs
                return Payload(data, tuple(_read(file, starts, at) for at in chosen))
        except (OSError, ValueError, struct.error) as error:
            raise self._unreadable(f"{name}.unit", error) from error

    def remove_units(self, names: Iterable[str]) -> None:
        """Remove results that are no longer needed.

        Raises:  OutputError.
        """
        for name in names:
            try:
                self._unit(name).unlink(missing_ok=True)
            except OSError as error:
                raise output_error(self._unit(name), error) from error

    @property
    def nbytes(self) -> int:
        """Bytes of all files."""
        return sum(each.stat().st_size for each in self.path.iterdir())

    def _unit(self, name: str) -> Path:
        return self.path / f"{name}.unit"

    def _unreadable(self, name: str, error: Exception) -> UsageError:
        return self._error(f"{name} cannot be read: {error}", "remove the folder")


def load_arrays(path: Path) -> Arrays:
    """The arrays of a file."""
    with np.load(path, allow_pickle=False) as file:
        return {each: file[each] for each in file.files}


def _read(file: IO[bytes], sizes: Sequence[int], at: int) -> bytes:
    """Blob number `at`, where `sizes` has what stands before all of them first."""
    file.seek(sum(sizes[: at + 1]))
    return file.read(sizes[at + 1])


def _clear(path: Path) -> None:
    """Remove the files of a run, and nothing else."""
    for pattern in _OWN:
        for each in path.glob(pattern):
            each.unlink()


def remove(path: Path) -> None:
    """Remove the folder of a run; one that holds other files stays.

    Raises:  OutputError where that is not possible.
    """
    try:
        _clear(path)
        if not any(path.iterdir()):
            path.rmdir()
    except OSError as error:
        raise output_error(path, error) from error


_FEW = 1e5
"""Units of less effort together are not worth other processes."""
_LIMIT_S = 600.0


@dataclass(frozen=True, slots=True)
class LevelUnits:
    """Does the units of a level by steps, and keeps what they give."""

    folder: WorkFolder
    farm: Farm
    say: Say
    level: int

    def complete(
        self,
        step: str,
        make: Callable[[int], Payload],
        efforts: Sequence[float],
        name: str = "",
    ) -> list[str]:
        """Do all units of a step that are not kept yet; the names under which they are.

        step     the function is `rules.STEP`
        make     the payload of a unit by its number, when its turn comes
        efforts  of the units, in about microseconds
        name     of their answers; that of the step if not given
        """
        label = name or step
        names = [f"{label}-{self.level}-{number}" for number in range(len(efforts))]
        waiting = [at for at, name in enumerate(names) if not self.folder.has_unit(name)]
        waiting.sort(key=efforts.__getitem__, reverse=True)  # the last ones should end together
        remaining = sum(efforts[at] for at in waiting)
        total = sum(efforts)
        meter = Meter(self.say, f"level {self.level}, {label}", total, total - remaining)
        farm = self.farm if remaining > _FEW else CALLER
        units = (Unit(f"rules.{step}", make(at), _LIMIT_S) for at in waiting)
        for at, answer in answers(farm, units):
            self.folder.save_unit(names[waiting[at]], answer)
            meter.add(efforts[waiting[at]])
        return names
