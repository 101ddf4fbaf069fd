"""How many threads NumPy's products use, so that they leave the other cores alone."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_CORES = ("numpy._core._multiarray_umath", "numpy.core._multiarray_umath")
_NAMES = (
    ("scipy_openblas_", "64_"),
    ("scipy_openblas_", ""),
    ("openblas_", "64_"),
    ("openblas_", ""),
)


@dataclass(frozen=True, slots=True)
class _OpenBlas:
    """Gets and sets the number of OpenBLAS's threads."""

    get: Any
    set: Any


@contextmanager
def one_blas_thread() -> Iterator[bool]:
    """Run products on one thread inside the block; False if NumPy has another BLAS."""
    threads = _find_openblas()
    if threads is None:
        yield False
        return
    count = int(threads.get())
    threads.set(1)
    try:
        yield True
    finally:
        threads.set(count)


@lru_cache(maxsize=1)
def _find_openblas() -> _OpenBlas | None:
    """NumPy's extension module is linked with its OpenBLAS, whose names are found through it."""
    for name in _CORES:
        path = getattr(sys.modules.get(name), "__file__", None)
        if path is None:
            continue
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for prefix, suffix in _NAMES:
            get = getattr(library, f"{prefix}get_num_threads{suffix}", None)
            put = getattr(library, f"{prefix}set_num_threads{suffix}", None)
            if get is not None and put is not None:
                return _OpenBlas(get, put)
    return None
