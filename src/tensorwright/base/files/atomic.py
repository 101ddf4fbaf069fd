"""Write files whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tensorwright.base.errors import OutputError

_CAUSES: dict[int, tuple[str, str]] = {
    errno.ENOSPC: ("the disk is full", "free some space or write to another disk"),
    errno.EDQUOT: ("the disk quota is used up", "free some space or write to another disk"),
    errno.EACCES: ("no permission to write there", "choose a folder that you may write to"),
    errno.EPERM: ("no permission to write there", "choose a folder that you may write to"),
    errno.EROFS: ("the file system is read-only", "choose a folder on a writable file system"),
    errno.ENOENT: ("the folder does not exist", "create the folder first"),
    errno.ENOTDIR: ("a part of the path is not a folder", "check the path"),
    errno.EISDIR: ("it is a folder", "give the name of a file"),
    errno.ENAMETOOLONG: ("the name is too long", "choose a shorter name"),
}


def output_error(path: str | os.PathLike[str], error: OSError) -> OutputError:
    """Name the cause of a failed write, and what to do about it."""
    fallback = (error.strerror or str(error), "choose another place to write to")
    reason, remedy = _CAUSES.get(error.errno or 0, fallback)
    return OutputError(stage="output", where=f"file {path}", reason=reason, remedy=remedy)


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Refuse a path whose place no file can take.

    A file that took the place of /dev/null would fill up with what the whole system throws away.
    Raises:  OutputError for a folder, a device, a pipe and the like.
    """
    target = Path(path)
    if target.is_dir():
        raise output_error(target, OSError(errno.EISDIR, "is a directory"))
    if target.exists() and not target.is_file():
        reason = "it is a device or a pipe, and a file would take its place"
        remedy = "give the name of a file"
        raise OutputError(stage="output", where=f"file {path}", reason=reason, remedy=remedy)


@contextmanager
def atomic_writer(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a binary file that takes the place of `path` when the block ends well.

    The bytes go to a temporary file in the same folder, are flushed to the disk, and then take
    the name in one step. If anything fails, the old file stays as it was and the temporary one
    is removed. The new file has the mode of the old one, or that of a freshly created file.

    Raises:  OutputError for a full disk, missing folder, missing permission and the like.
    """
    check_replaceable(path)
    target = Path(path)
    temporary: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:64]}.", dir=target.parent)
        temporary = Path(name)
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(_mode_for(target))
        temporary.replace(target)
        temporary = None
    except OSError as error:
        raise output_error(target, error) from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink()


def write_atomically(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write the whole content (text as UTF-8) or nothing; see `atomic_writer`."""
    with atomic_writer(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Create a folder and its parents where missing.

    Raises:  OutputError where that is not possible.
    """
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise output_error(folder, error) from error
    return folder


def _mode_for(target: Path) -> int:
    if target.exists():
        return target.stat().st_mode & 0o7777
    return 0o666 & ~_UMASK


def _read_umask() -> int:
    """The process's umask; reading it means setting it, so this runs once, at import."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


_UMASK = _read_umask()
