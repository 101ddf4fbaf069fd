"""Keep executables on disk, so that a network that was compiled before is mapped into memory.

An entry is a short JSON text under a key in a `KernelCache`.  It names an executable: a file of
`container.py` whose name is the digest of its header, which covers the whole content.  So an entry
and its executable match, even if several processes write at the same time.  A file that is missing,
damaged, or belongs to another user is ignored.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tensorwright.base import TensorwrightError, knobs
from tensorwright.runtime.caches.kernel_cache import (
    UNFINISHED,
    KernelCache,
    is_ours,
    remove_abandoned,
)
from tensorwright.runtime.container import (
    Contents,
    container_digest,
    parse_container,
    write_contents,
)

_SUFFIX = ".tw"
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
        return self.folder / f"{Path(digest).name}{_SUFFIX}"

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
        for path in self.folder.glob(f"*{_SUFFIX}"):
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
