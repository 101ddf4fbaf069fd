"""Files that commands write: asked for before the work, so that no work is lost."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from tensorwright.base import output_error


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse now what could not be written later; an existing file stays as it is.

    Raises:  OutputError.
    """
    target = Path(path)
    if target.is_dir():
        raise output_error(target, OSError(errno.EISDIR, "is a directory"))
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name[:64]}."):
            pass
    except OSError as error:
        raise output_error(target, error) from error
