"""Caches on the disk: kernels, and whole executables.

A kernel's object code is kept under all that it depends on. Loaded machine code will run, so the
folder must belong to the user and be closed to all others (mode 0700). An entry must also belong to
the user, and have the digest of its content. An entry that fails these checks is removed and
counted, and its kernel is compiled again. If the folder cannot be used, the cache warns once and
keeps nothing.

A network that was compiled before is mapped into memory. An entry is a short JSON text under a key
in a `KernelCache`. It names an executable: a file of `container.py` whose name is the digest of its
header, which covers the whole content. So an entry and its executable match, even if several
processes write at the same time. A file that is missing, damaged, or belongs to another user is
ignored.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
import shutil
import stat
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np

from tensorwright.base import TensorwrightError, knobs, warn_of_cache
from tensorwright.runtime import container

DEFAULT_LIMIT_BYTES = 512 << 20
_MAGIC = b"TWKERN1\n"
_DIGEST_BYTES = 32
UNFINISHED = ".new-"  # the names of files that are being written begin with it
_ABANDONED_S = 3600.0  # the age at which such a file is taken for abandoned
_PRUNED_SHARE = 0.75  # of the limit that is used after pruning


class KeptFiles:
    """A folder of files under keys, least recently used first out.

    Several threads and processes may use it at once: a file appears whole or not at all.
    """

    suffix: ClassVar[str]

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self.folder = folder
        self.limit_bytes = limit_bytes
        self._lock = threading.Lock()
        self._size_bytes: int | None = None
        self._is_usable: bool | None = None

    def is_usable(self) -> bool:
        """Whether the folder is the user's own; otherwise it warns once."""
        with self._lock:
            is_usable = self._is_usable
        if is_usable is not None:
            return is_usable
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = self.folder.stat()
            if not is_ours(status):
                return self._disable("it belongs to another user")
            if os.name == "posix" and stat.S_IMODE(status.st_mode) & 0o077:
                self.folder.chmod(0o700)
        except OSError as error:
            return self._disable(error.strerror or str(error))
        with self._lock:
            self._is_usable = True
        return True

    def size_bytes(self) -> int:
        """The bytes of all files on the disk."""
        return sum(size for _, size, _ in self._files())

    def count(self) -> int:
        """The number of files on the disk."""
        return len(self._files())

    def clear(self) -> None:
        """Remove all files; processes that have mapped one keep it."""
        for _, _, path in self._files():
            _remove(path)
        remove_abandoned(self.folder)
        with self._lock:
            self._size_bytes = None

    def path(self, key: str) -> Path:
        """The file of a key."""
        return self.folder / f"{Path(key).name}{self.suffix}"

    @contextlib.contextmanager
    def reading(self, path: Path) -> Iterator[BinaryIO]:
        """A file that was opened for reading.

        Raises:  OSError if it is missing, a link, or belongs to another user.
        """
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        handle = os.open(path, flags)
        with os.fdopen(handle, "rb") as file:
            if not is_ours(os.fstat(file.fileno())):
                raise PermissionError("it belongs to another user")
            yield file

    def write(self, write: Callable[[BinaryIO], str]) -> str:
        """Keep what a function writes under the key that it returns, which is returned.

        Raises:  OSError if that fails; nothing is kept then.
        """
        temporary: Path | None = None
        try:
            # Not flushed to the disk: a file cut short by a crash fails its digest.
            handle, name = tempfile.mkstemp(prefix=UNFINISHED, dir=self.folder)
            temporary = Path(name)
            with os.fdopen(handle, "wb") as file:
                key = write(file)
            size_bytes = temporary.stat().st_size
            temporary.replace(self.path(key))
        except OSError:
            if temporary is not None:
                _remove(temporary)
            raise
        self._grow(size_bytes)
        return key

    def note_pruned(self, count: int) -> None:
        """Files have been removed because the limit was passed."""

    def _disable(self, reason: str) -> bool:
        """Stop using the folder; warns the first time."""
        with self._lock:
            is_first = self._is_usable is not False
            self._is_usable = False
        if is_first:
            warn_of_cache(self.folder, reason)
        return False

    def _grow(self, added_bytes: int) -> None:
        """Note new bytes, and prune when the limit is passed."""
        with self._lock:
            size_bytes = self._size_bytes
            self._size_bytes = None if size_bytes is None else size_bytes + added_bytes
        if size_bytes is None:
            self._size_bytes = sum(size for _, size, _ in self._files())
        if self._size_bytes is not None and self._size_bytes > self.limit_bytes:
            self._prune()

    def _prune(self) -> None:
        """Remove the least recently used files until the rest is well below the limit; the newest
        one stays.
        """
        remove_abandoned(self.folder)
        files = sorted(self._files())
        size_bytes = sum(size for _, size, _ in files)
        removed = 0
        for _, size, path in files[:-1]:
            if size_bytes <= self.limit_bytes * _PRUNED_SHARE:
                break
            _remove(path)
            size_bytes -= size
            removed += 1
        self.note_pruned(removed)
        with self._lock:
            self._size_bytes = size_bytes

    def _files(self) -> list[tuple[float, int, Path]]:
        """Time of last use, size, path of each file."""
        files = []
        with contextlib.suppress(OSError), os.scandir(self.folder) as listing:
            for entry in listing:
                if entry.name.endswith(self.suffix):
                    with contextlib.suppress(OSError):
                        status = entry.stat(follow_symlinks=False)
                        files.append((status.st_mtime, status.st_size, Path(entry.path)))
        return files


class KernelCache(KeptFiles):
    """Compiled kernels, each with the digest of its content.

    `counts` has numbers since it was opened: hits, misses (corrupt entries are among them), corrupt
    entries, stored ones, pruned ones.
    """

    suffix = ".kernel"

    def __init__(self, folder: Path, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        super().__init__(folder, limit_bytes)
        self.counts: Counter[str] = Counter()

    def get(self, key: str) -> bytes | None:
        """The checked object code of a key; None if there is none that can be trusted."""
        path, content = self.path(key), None
        if self.is_usable():
            with contextlib.suppress(OSError), self.reading(path) as file:
                content = file.read()
            if content is None and not os.access(self.folder, os.W_OK):
                warn_of_cache(self.folder, "no permission to write there")
        if content is None:
            self._count(misses=1)
            return None
        data = content[len(_MAGIC) + _DIGEST_BYTES :]
        if content[: len(_MAGIC) + _DIGEST_BYTES] != _MAGIC + _digest(key, data):
            self._count(misses=1, corrupt=1)
            _remove(path)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        self._count(hits=1)
        return data

    def put(self, key: str, data: bytes) -> bool:
        """Keep object code; False if that failed (a warning says so once)."""
        if not self.is_usable():
            return False

        def write(file: BinaryIO) -> str:
            file.write(_MAGIC + _digest(key, data) + data)
            return key

        try:
            self.write(write)
        except OSError as error:
            self._disable(f"cannot write ({error.strerror or error})")
            return False
        self._count(stored=1)
        return True

    def note_pruned(self, count: int) -> None:
        """Count them."""
        self._count(pruned=count)

    def _count(self, **increments: int) -> None:
        with self._lock:
            self.counts.update(increments)


def _digest(key: str, data: bytes) -> bytes:
    """Digest of an entry; the key is part of it, so that renaming one makes it invalid."""
    return hashlib.sha256(key.encode() + b"\0" + data).digest()


def remove_abandoned(folder: Path) -> None:
    """Remove the unfinished files of processes that ended while they wrote an entry."""
    latest_s = time.time() - _ABANDONED_S
    with contextlib.suppress(OSError):
        for path in folder.glob(f"{UNFINISHED}*"):
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < latest_s:
                    path.unlink()


def is_ours(status: os.stat_result) -> bool:
    """Whether a file belongs to the user of this process."""
    return not hasattr(os, "getuid") or status.st_uid == os.getuid()


_caches: dict[Path, KernelCache] = {}
_caches_lock = threading.Lock()


def default_cache() -> KernelCache:
    """The cache of kernels in the folder that the knob `home` names."""
    return named_cache("kernels")


def named_cache(name: str, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> KernelCache:
    """A cache in the folder of the knob `home`; one object for each folder."""
    folder = knobs.HOME.get() / name
    with _caches_lock:
        return _caches.setdefault(folder, KernelCache(folder, limit_bytes))


_ENTRIES_LIMIT_BYTES = 32 << 20
_MEGABYTE = 1_000_000


class ExecutableCache(KeptFiles):
    """Executables, each named by the digest of its header, and entries that name them.

    limit_bytes   of all executables
    """

    suffix = ".tw"

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        super().__init__(folder, limit_bytes)
        self._entries = KernelCache(folder, _ENTRIES_LIMIT_BYTES)

    def entry(self, key: str) -> dict[str, Any] | None:
        """The entry of a key; None if there is none that can be trusted."""
        text = self._entries.get(key)
        return None if text is None else json.loads(text)

    def contents(self, entry: dict[str, Any]) -> container.Contents | None:
        """The executable of an entry, mapped; None if it is missing or damaged."""
        path = self.path(entry["executable"])
        try:
            with self.reading(path) as file:
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            return None
        memory = np.frombuffer(mapped, np.uint8)
        try:
            contents = container.parse_container(memory, f"file {path}")
        except TensorwrightError:
            _remove(path)
            return None
        if container.container_digest(memory) != entry["executable"]:
            _remove(path)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return contents

    def put(self, key: str, contents: container.Contents, facts: dict[str, Any]) -> bool:
        """Keep an executable and its entry, which has the facts and names the executable.

        Returns False, and keeps nothing, if the executable alone exceeds the limit or half of what
        is free on the disk, or cannot be written.
        """
        size_bytes = sum(map(len, contents.objects)) + sum(a.nbytes for a in contents.constants)
        if size_bytes > self.limit_bytes or not self._entries.is_usable():
            return False
        if 2 * size_bytes > shutil.disk_usage(self.folder).free:
            return False
        try:
            digest = self.write(lambda file: container.write_contents(file, contents))
        except OSError:
            return False
        self.renew(key, {**facts, "executable": digest})
        return True

    def renew(self, key: str, entry: dict[str, Any]) -> None:
        """Write an entry again, with other facts about the same executable."""
        self._entries.put(key, json.dumps(entry).encode())

    def size_bytes(self) -> int:
        """The bytes of all executables on the disk, and of their entries."""
        return super().size_bytes() + self._entries.size_bytes()

    def clear(self) -> None:
        """Remove everything; processes that run an executable keep it."""
        self._entries.clear()
        super().clear()


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def default_executable_cache() -> ExecutableCache:
    """The cache in the folder of the knob `home`, with the limit of the knob `executable_cache`."""
    return _cache(knobs.HOME.get() / "executables", knobs.EXECUTABLE_CACHE.get() * _MEGABYTE)


@lru_cache(maxsize=16)
def _cache(folder: Path, limit_bytes: int) -> ExecutableCache:
    return ExecutableCache(folder, limit_bytes)
