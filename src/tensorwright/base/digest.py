"""A digest of large data, computed on all cores."""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from tensorwright.base.cores import available_cores

_BLOCK_BYTES = 8 << 20
_SMALL_BYTES = 2 * _BLOCK_BYTES

T = TypeVar("T")
V = TypeVar("V")


def digest_of_bytes(data: bytes | memoryview) -> str:
    """SHA-256 of the SHA-256s of the blocks of 8 MiB."""
    view = memoryview(data)
    blocks = [view[n : n + _BLOCK_BYTES] for n in range(0, len(view), _BLOCK_BYTES)]
    return hashlib.sha256(b"".join(on_all_cores(_digest, blocks, len(view)))).hexdigest()


def digest_of_file(path: str | os.PathLike[str]) -> str:
    """As `digest_of_bytes`, of a file that is mapped, not read.

    Raises:  OSError where it cannot be read.
    """
    with Path(path).open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return digest_of_bytes(b"")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            view = memoryview(mapped)
            try:
                return digest_of_bytes(view)
            finally:
                view.release()


def on_all_cores(work: Callable[[T], V], items: Sequence[T], size_bytes: int) -> list[V]:
    """The results of work that does not hold the interpreter's lock, such as digests.

    size_bytes   of all data; little of it is done here
    """
    if size_bytes < _SMALL_BYTES or available_cores() == 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(available_cores()) as pool:
        return list(pool.map(work, items))


def _digest(block: memoryview) -> bytes:
    digest = hashlib.sha256(block).digest()
    block.release()
    return digest
