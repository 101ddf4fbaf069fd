"""Files: their kinds, locks between processes, and writing whole files or nothing.

Write files whole or not at all.

The folder of the knob `home`, where caches and records are kept, and what is said without it.

What kind of file something is, by its first bytes: for messages about a file given in the wrong
place.

An advisory lock on a file, between threads and processes; it ends with its holder.

Frozen dataclasses and enums as plain data: what JSON can say, and back.

A dataclass is an object that names its class under "_", an enum its value.  Lists are tuples, and
floats that JSON lacks (nan, inf) are objects, too.  Where two references to one object matter (a
class that compares by identity: tensors), the second and later ones are its number under "#".
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import math
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from tensorwright.base.errors import OutputError
from tensorwright.base.knobs import HOME

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


EXECUTABLE_MAGIC = b"TWEXEC\r\n"
HEAD_BYTES = 32
"""The first bytes of a file that suffice to tell every kind."""

_EXPORT = """export a network of PyTorch:
  torch.export.save(torch.export.export(module.eval(), (example,)), "model.pt2")"""


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file that is not an ONNX model.

    name    "an array of NumPy"      remedy  what to do where a model was wanted, of the file FILE
    """

    name: str
    start: bytes
    remedy: str
    offset: int = 0

    def remedy_for(self, path: str) -> str:
        """The remedy for a file of that name; "" where it has none."""
        return self.remedy.replace("FILE", repr(path) if path else "FILE")


EXECUTABLE = FileKind(
    "an executable of tensorwright",
    EXECUTABLE_MAGIC,
    "load what is compiled already:\n  tensorwright.load(FILE)",
)
GGUF = FileKind("a GGUF file", b"GGUF", "use it as it is: it is a model")
_KINDS = (
    EXECUTABLE,
    GGUF,
    FileKind("a record store or another database", b"SQLite format 3\0", "give a model"),
    FileKind("a zip archive, as torch.save and numpy.savez write", b"PK\x03\x04", _EXPORT),
    FileKind("a pickle, as torch.save wrote", b"\x80\x02", _EXPORT),
    FileKind("an array of NumPy", b"\x93NUMPY", "give a model, and the array as its input"),
    FileKind("an HDF5 file, as Keras writes", b"\x89HDF\r\n\x1a\n", "convert it with tf2onnx"),
    FileKind("a TFLite model", b"TFL3", "convert it with tf2onnx", 4),
)


def kind_of_bytes(head: bytes) -> FileKind | None:
    """The kind of a file that begins so; None where nothing tells, as for ONNX models."""
    for kind in _KINDS:
        if head[kind.offset : kind.offset + len(kind.start)] == kind.start:
            return kind
    return None


def kind_of_file(path: str | os.PathLike[str]) -> FileKind | None:
    """The kind of a file; None where nothing tells, or it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return kind_of_bytes(file.read(HEAD_BYTES))
    except OSError:
        return None


@contextmanager
def hold_home_lock(
    name: str, should_stop: Callable[[], bool], *, wait_s: float = 0.2, is_shared: bool = False
) -> Iterator[bool]:
    """Hold a lock of this user's processes inside the block: a file in the folder of the knob
    `home`.

    The block gets False, and does not hold the lock, if `should_stop` became true first.
    wait_s      seconds between two calls of `should_stop`
    is_shared   whether others that share it may hold it, too
    Raises:  OutputError if the file cannot be made.
    """
    path = make_home() / name
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise output_error(path, error) from error
    try:
        is_held = False
        while not is_held and not should_stop():
            is_held = _acquire(descriptor, fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX, wait_s)
        yield is_held
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, kind: int, wait_s: float) -> bool:
    """Whether the file's lock was free in time."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.005)


Kinds: TypeAlias = Mapping[str, Any]


def now_utc() -> str:
    """This moment as text, "2026-01-31T12:00:00.000000Z": of fixed width, so that texts sort as
    times do.
    """
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def kinds_of(*classes: type, **renamed: type) -> Kinds:
    """The classes by their names, for `from_data`; `renamed` gives classes by earlier names."""
    return {**{kind.__name__: kind for kind in classes}, **renamed}


def to_data(value: object) -> object:
    """The value as `json.dumps` takes it: objects, lists, texts and numbers."""
    return _encode(value, {})


def from_data(data: object, kinds: Kinds) -> Any:
    """The inverse of `to_data`.

    kinds   all classes that may occur
    Raises:  ValueError for data that is not of that form.
    """
    try:
        return _decode(data, kinds, [])
    except (KeyError, TypeError, IndexError, RecursionError) as error:
        raise ValueError(f"{type(error).__name__} {error}") from error


def _encode(value: object, numbers: dict[object, int]) -> object:
    if isinstance(value, Enum):
        return {"_": type(value).__name__, "value": _encode(value.value, numbers)}
    if isinstance(value, tuple):
        return [_encode(part, numbers) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"_": "float", "value": str(value)}
    if not is_dataclass(value) or isinstance(value, type):
        return value
    if _is_by_identity(type(value)):
        if value in numbers:
            return {"#": numbers[value]}
        parts = _encoded_fields(value, numbers)
        numbers[value] = len(numbers)
        return parts
    return _encoded_fields(value, numbers)


def _encoded_fields(value: Any, numbers: dict[object, int]) -> dict[str, object]:
    names = [field.name for field in fields(value) if field.init]
    parts = {name: _encode(getattr(value, name), numbers) for name in names}
    return {"_": type(value).__name__, **parts}


def _decode(data: Any, kinds: Kinds, numbered: list[Any]) -> Any:
    if isinstance(data, list):
        return tuple([_decode(part, kinds, numbered) for part in data])
    if not isinstance(data, dict):
        return data
    if "#" in data:
        return numbered[data["#"]]
    name = data["_"]
    values = {key: _decode(part, kinds, numbered) for key, part in data.items() if key != "_"}
    if name == "float":
        return float(values["value"])
    kind = kinds[name]
    value = kind(**values)
    if is_dataclass(kind) and _is_by_identity(kind):
        numbered.append(value)
    return value


def _is_by_identity(kind: Any) -> bool:
    return bool(kind.__hash__ is object.__hash__)
