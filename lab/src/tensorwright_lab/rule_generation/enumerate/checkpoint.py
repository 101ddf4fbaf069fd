"""A folder that keeps what an enumeration has found, so that a later run can go on with it.

    run.json        what is enumerated: a run goes on only where it would do the very same
    state.npz       the classes and equalities of all finished levels
    values-*.u32    the values of the classes
    keys-*.npz      of the last level: the fingerprints of a chunk of applications
    found-*.npz     of the last level: the applications of a chunk that equal something

Each file is written whole or not at all, and holds numbers and text only.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import UsageError, atomic_writer, make_folder, output_error, write_atomically

_OWN = ("run.json", "*.npz", "values-*.u32")
Arrays = dict[str, NDArray[Any]]


class WorkFolder:
    """The files of one enumeration.

    Raises:  UsageError where the folder holds other things, or another run and `resume` is asked
             for; OutputError where it cannot be written.
    """

    def __init__(self, path: Path, run: Mapping[str, Any], *, resume: bool) -> None:
        self.path = make_folder(path)
        text = json.dumps(dict(run), indent=1, sort_keys=True)
        mark = path / "run.json"
        if not mark.is_file() and any(path.iterdir()):
            raise self._error("it holds files of something else", "name an empty or a new folder")
        if mark.is_file() and resume:
            if mark.read_text(encoding="utf-8") != text:
                raise self._error(
                    "it keeps another run", "the same preset, size and seed, or no --resume"
                )
            return
        _clear(path)
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
            with np.load(self.path / f"{name}.npz", allow_pickle=False) as file:
                return {each: file[each] for each in file.files}
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            raise self._error(f"{name}.npz cannot be read: {error}", "no --resume") from error


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
