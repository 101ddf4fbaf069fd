"""The folder of the knob `home`, where caches and records are kept, and what is said without it."""

from __future__ import annotations

import errno
import os
import warnings
from pathlib import Path

from tensorwright.base.errors import OutputError
from tensorwright.base.files.atomic import make_folder, output_error
from tensorwright.base.knobs import HOME

_REMEDY = f"set {HOME.variable} to a folder that you may write to"

_warned: set[Path] = set()


def make_home() -> Path:
    """The folder, made where it is missing.

    Raises:  OutputError where it cannot be written; it names the variable for another folder.
    """
    folder = HOME.get()
    try:
        make_folder(folder)
        if not os.access(folder, os.W_OK):
            raise output_error(folder, PermissionError(errno.EACCES, "no permission"))
    except OutputError as error:
        where = f"folder {folder}, where records and caches are kept"
        raise OutputError(
            stage=error.stage, where=where, reason=error.reason, remedy=_REMEDY
        ) from None
    return folder


def warn_of_cache(folder: Path, reason: str) -> None:
    """Warn that nothing can be kept in the folder of a cache; once for all caches beside it."""
    if folder.parent in _warned:
        return
    _warned.add(folder.parent)
    warnings.warn(
        f"folder {folder} cannot be used: {reason}. What is compiled is not kept, and is compiled "
        f"again each time; {_REMEDY}",
        RuntimeWarning,
        stacklevel=4,
    )
