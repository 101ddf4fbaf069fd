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
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tensorwright.base import TensorwrightError, knobs, warn_of_cache
from tensorwright.runtime.container import (
    Contents,
    container_digest,
    parse_container,
    write_contents,
)

DEFAULT_LIMIT_BYTES = 512 << 20
_MAGIC = b"TWKERN1\n"
_DIGEST_BYTES = 32
_SUFFIX = ".kernel"
UNFINISHED = ".new-"  # the names of files that are being written begin with it
_ABANDONED_S = 3600.0  # the age at which such a file is taken for abandoned
_PRUNED_SHARE = 0.75  # of the limit that is used after pruning


class KernelCache:
    """A folder of compiled kernels, least recently used first out.

    Several threads and processes may use it at once: an entry appears whole or not at all.
    `counts` has numbers since it was opened: hits, misses (corrupt entries are among them), corrupt
    entries, stored ones, pruned ones.
    """

    def __init__(self, folder: Path, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.folder = folder
        self.limit_bytes = limit_bytes
        self.counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._size_bytes: int | None = None
        self._is_usable: bool | None = None

    def get(self, key: str) -> bytes | None:
        """The checked object code of a key; None if there is none that can be trusted."""
        content = self._read(self._path(key)) if self.is_usable() else None
        if content is None:
            if self._is_usable and not os.access(self.folder, os.W_OK):
                warn_of_cache(self.folder, "no permission to write there")
            self._count(misses=1)
            return None
        data = content[len(_MAGIC) + _DIGEST_BYTES :]
        if content[: len(_MAGIC) + _DIGEST_BYTES] != _MAGIC + _digest(key, data):
            self._count(misses=1, corrupt=1)
            with contextlib.suppress(OSError):
                self._path(key).unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(self._path(key))
        self._count(hits=1)
        return data

    def put(self, key: str, data: bytes) -> bool:
        """Keep object code; False if that failed (a warning says so once)."""
        if not self.is_usable():
            return False
        content = _MAGIC + _digest(key, data) + data
        temporary: Path | None = None
        try:
            # Not flushed to the disk: a file cut short by a crash fails its digest.
            handle, name = tempfile.mkstemp(prefix=UNFINISHED, dir=self.folder)
            temporary = Path(name)
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            temporary.replace(self._path(key))
        except OSError as error:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    temporary.unlink()
            self._disable(f"cannot write ({error.strerror or error})")
            return False
        self._count(stored=1)
        self._grow(len(content))
        return True

    def size_bytes(self) -> int:
        """The bytes of all entries on the disk."""
        return sum(size for _, size, _ in self._entries())

    def count(self) -> int:
        """The number of entries on the disk."""
        return len(self._entries())

    def clear(self) -> None:
        """Remove all entries."""
        for _, _, path in self._entries():
            with contextlib.suppress(OSError):
                path.unlink()
        remove_abandoned(self.folder)
        with self._lock:
            self._size_bytes = None

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{_SUFFIX}"

    def _read(self, path: Path) -> bytes | None:
        """The file's bytes; None if it is missing, a link, or belongs to another user."""
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        try:
            handle = os.open(path, flags)
            with os.fdopen(handle, "rb") as file:
                return file.read() if is_ours(os.fstat(file.fileno())) else None
        except OSError:
            return None

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

    def _disable(self, reason: str) -> bool:
        """Stop using the folder; warns the first time."""
        with self._lock:
            is_first = self._is_usable is not False
            self._is_usable = False
        if is_first:
            warn_of_cache(self.folder, reason)
        return False

    def _count(self, **increments: int) -> None:
        with self._lock:
            self.counts.update(increments)

    def _grow(self, added_bytes: int) -> None:
        """Note new bytes, and prune when the limit is passed."""
        with self._lock:
            size_bytes = self._size_bytes
            self._size_bytes = None if size_bytes is None else size_bytes + added_bytes
        if size_bytes is None:
            self._size_bytes = self.size_bytes()
        if self._size_bytes is not None and self._size_bytes > self.limit_bytes:
            self._prune()

    def _prune(self) -> None:
        """Remove the least recently used entries until the cache is well below its limit."""
        remove_abandoned(self.folder)
        entries = sorted(self._entries())
        size_bytes = sum(size for _, size, _ in entries)
        removed = 0
        for _, size, path in entries:
            if size_bytes <= self.limit_bytes * _PRUNED_SHARE:
                break
            with contextlib.suppress(OSError):
                path.unlink()
            size_bytes -= size
            removed += 1
        self._count(pruned=removed)
        with self._lock:
            self._size_bytes = size_bytes

    def _entries(self) -> list[tuple[float, int, Path]]:
        """Time of last use, size, path of each entry."""
        entries = []
        try:
            with os.scandir(self.folder) as listing:
                for entry in listing:
                    if entry.name.endswith(_SUFFIX):
                        with contextlib.suppress(OSError):
                            status = entry.stat(follow_symlinks=False)
                            entries.append((status.st_mtime, status.st_size, Path(entry.path)))
        except OSError:
            return []
        return entries


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


_EXECUTABLE_SUFFIX = ".tw"
_ENTRIES_LIMIT_BYTES = 32 << 20
_KEPT_SHARE = 0.75  # of the limit: pruning removes the least recently used ones down to it
_MEGABYTE = 1_000_000


class ExecutableCache:
    """A folder of executables, least recently used first out.

    limit_bytes   of all executables
    """

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self.folder = folder
        self.limit_bytes = limit_bytes
        self._entries = KernelCache(folder, _ENTRIES_LIMIT_BYTES)

    def entry(self, key: str) -> dict[str, Any] | None:
        """The entry of a key; None if there is none that can be trusted."""
        text = self._entries.get(key)
        return None if text is None else json.loads(text)

    def contents(self, entry: dict[str, Any]) -> Contents | None:
        """The executable of an entry, mapped; None if it is missing or damaged."""
        path = self._path(entry["executable"])
        memory = _mapped(path)
        if memory is None:
            return None
        try:
            contents = parse_container(memory, f"file {path}")
        except TensorwrightError:
            _remove(path)
            return None
        if container_digest(memory) != entry["executable"]:
            _remove(path)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return contents

    def put(self, key: str, contents: Contents, facts: dict[str, Any]) -> bool:
        """Keep an executable and its entry, which has the facts and names the executable.

        Returns False, and keeps nothing, if the executable alone exceeds the limit or half of what
        is free on the disk, or cannot be written.
        """
        size_bytes = sum(map(len, contents.objects)) + sum(a.nbytes for a in contents.constants)
        if size_bytes > self.limit_bytes or not self._entries.is_usable():
            return False
        if 2 * size_bytes > shutil.disk_usage(self.folder).free:
            return False
        temporary: Path | None = None
        try:
            handle, name = tempfile.mkstemp(prefix=UNFINISHED, dir=self.folder)
            temporary = Path(name)
            with os.fdopen(handle, "wb") as file:
                digest = write_contents(file, contents)
            temporary.replace(self._path(digest))
        except OSError:
            if temporary is not None:
                _remove(temporary)
            return False
        self.renew(key, {**facts, "executable": digest})
        self._prune()
        return True

    def renew(self, key: str, entry: dict[str, Any]) -> None:
        """Write an entry again, with other facts about the same executable."""
        self._entries.put(key, json.dumps(entry).encode())

    def size_bytes(self) -> int:
        """The bytes of all executables on the disk, and of their entries."""
        return sum(size for _, size, _ in self._files()) + self._entries.size_bytes()

    def count(self) -> int:
        """The number of executables on the disk."""
        return len(self._files())

    def clear(self) -> None:
        """Remove everything; processes that run an executable keep it."""
        self._entries.clear()
        for _, _, path in self._files():
            _remove(path)

    def _path(self, digest: str) -> Path:
        return self.folder / f"{Path(digest).name}{_EXECUTABLE_SUFFIX}"

    def _prune(self) -> None:
        remove_abandoned(self.folder)
        files = sorted(self._files())
        size_bytes = sum(size for _, size, _ in files)
        if size_bytes <= self.limit_bytes:
            return
        for _, size, path in files[:-1]:
            if size_bytes <= self.limit_bytes * _KEPT_SHARE:
                return
            _remove(path)
            size_bytes -= size

    def _files(self) -> list[tuple[float, int, Path]]:
        """Time of last use, size, path of each executable."""
        files = []
        for path in self.folder.glob(f"*{_EXECUTABLE_SUFFIX}"):
            with contextlib.suppress(OSError):
                status = path.stat()
                files.append((status.st_mtime, status.st_size, path))
        return files


def _mapped(path: Path) -> np.ndarray[Any, np.dtype[np.uint8]] | None:
    """The bytes of a file, mapped; None if it is missing, a link, or another user's."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        with os.fdopen(handle, "rb") as file:
            if not is_ours(os.fstat(file.fileno())):
                return None
            return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    except (OSError, ValueError):
        return None


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def default_executable_cache() -> ExecutableCache:
    """The cache in the folder of the knob `home`, with the limit of the knob `executable_cache`."""
    return _cache(knobs.HOME.get() / "executables", knobs.EXECUTABLE_CACHE.get() * _MEGABYTE)


@lru_cache(maxsize=16)
def _cache(folder: Path, limit_bytes: int) -> ExecutableCache:
    return ExecutableCache(folder, limit_bytes)
