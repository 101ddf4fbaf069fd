"""Files that commands write: asked for before the work, so that no work is lost."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from tensorwright.base import OutputError, output_error


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


def check_output(path: str, program: str, *, is_executable: bool = False) -> None:
    """As `check_writable`, and refuse to write over the program that is read.

    is_executable   whether an executable is written, which is not to be called .onnx
    Raises:  OutputError.
    """
    target = Path(path)
    if is_executable and target.suffix.lower() == ".onnx":
        raise OutputError(
            stage="cli",
            where=f"file {path}",
            reason="an executable is written, and an ONNX file is something else",
            remedy=f"name it .tw:\n  -o {target.with_suffix('.tw')}",
        )
    source = Path(program)
    if target.exists() and source.exists() and target.samefile(source):
        raise OutputError(
            stage="cli",
            where=f"file {path}",
            reason="it is the program that is read, and would be lost",
            remedy="give another name",
        )
    check_writable(path)
