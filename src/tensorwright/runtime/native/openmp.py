"""Find the OpenMP runtime with which compiled kernels fork and join: GNU's libgomp.

A process must have one copy: two of them spin against each other and make a fork-join thousands of
times slower. So the order is: the copy that is already loaded (PyTorch has one, under some name),
the system's copy, a copy inside an installed wheel. Without libgomp, kernels run on one thread,
through stand-ins with the same binary interface, and a warning says so once.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tensorwright.base import MachineError, knobs

OPENMP_SYMBOLS = (
    "GOMP_parallel",
    "omp_get_thread_num",
    "omp_get_num_threads",
)
"""The functions that a kernel may call; `team.py` says which functions answer.

A kernel divides its work by `omp_get_num_threads()` inside the region, never by the number that it
requested: the runtime may give fewer threads, and the stand-ins give one.
"""

_MAPS = Path("/proc/self/maps")
_SYSTEM_NAME = "libgomp.so.1"
_WHEEL_PATTERNS = ("*.libs/libgomp*.so*", "torch/lib/libgomp*.so*", "*/lib/libgomp*.so*")
_REMEDY = "install libgomp (Debian: apt install libgomp1; Fedora: dnf install libgomp)"


class Origin(Enum):
    """Where the runtime comes from."""

    LOADED = "already loaded"
    SYSTEM = "system"
    BUNDLED = "inside a wheel"


@dataclass(frozen=True, slots=True)
class OpenMP:
    """A libgomp in this process: its file, where it came from, the addresses of its functions.

    `duplicates` are further copies that the process had loaded before; they cannot be unloaded.
    """

    path: str
    origin: Origin
    symbols: tuple[tuple[str, int], ...]
    duplicates: tuple[str, ...] = ()


class _State:
    """The result of the search in this process; guarded by the lock."""

    lock = threading.Lock()
    searched = False
    runtime: OpenMP | None = None
    spin: bool | None = None
    has_warned = False


def openmp_runtime() -> OpenMP | None:
    """The process's runtime, searched for (and loaded) once; None if there is none."""
    with _State.lock:
        if not _State.searched:
            _State.runtime = find_openmp()
            _State.searched = True
        return _State.runtime


def usable_threads(asked: int | None = None) -> int:
    """The number of threads of kernels: the requested one, or that of the knob `threads`.

    Without a runtime, the knob counts as 1.
    Raises:  UsageError for fewer than one; MachineError for more than one without libgomp.
    """
    wanted = knobs.THREADS.get() if asked is None else knobs.THREADS.read(asked)
    if wanted <= 1 or openmp_runtime() is not None:
        return wanted
    if asked is not None:
        raise MachineError(
            stage="runtime",
            where=f"{wanted} threads",
            reason="no libgomp: neither loaded, nor on the system, nor inside an installed wheel",
            remedy=f"{_REMEDY}, or ask for 1 thread",
        )
    with _State.lock:
        is_first = not _State.has_warned
        _State.has_warned = True
    if is_first:
        warnings.warn(
            f"no libgomp: programs run on one thread; {_REMEDY}", RuntimeWarning, stacklevel=2
        )
    return 1


def find_openmp(
    loaded: Iterable[str] | None = None, folders: Iterable[str] | None = None
) -> OpenMP | None:
    """Search in the order stated above, without remembering the result.

    `loaded` are the files mapped into this process, `folders` those of wheels.
    """
    mapped = loaded_libraries() if loaded is None else tuple(loaded)
    copies = tuple(path for path in mapped if Path(path).name.startswith("libgomp"))
    for path in copies:
        others = tuple(other for other in copies if other != path)
        runtime = _open(path, Origin.LOADED, others)
        if runtime is not None:
            return runtime
    runtime = _open(_SYSTEM_NAME, Origin.SYSTEM)
    if runtime is not None:
        return runtime
    for path in _bundled(sys.path if folders is None else folders):
        runtime = _open(path, Origin.BUNDLED)
        if runtime is not None:
            return runtime
    return None


def loaded_libraries() -> tuple[str, ...]:
    """The files mapped into this process, in the order of their addresses; Linux only."""
    try:
        lines = _MAPS.read_text(errors="replace").splitlines()
    except OSError:
        return ()
    paths = [line.split(maxsplit=5)[5] for line in lines if line.count(" ") > 4 and "/" in line]
    return tuple(dict.fromkeys(paths))


def set_spin(is_spinning: bool) -> bool:
    """Say how idle worker threads wait: spinning (fast fork-join) or asleep (leaves the cores).

    libgomp reads this from the environment only when it is loaded. Returns whether the setting is
    in force: False means that the library was loaded before, with another or an unknown setting.
    """
    with _State.lock:
        if _State.searched or _has_libgomp():
            return _State.spin is is_spinning
        os.environ["OMP_WAIT_POLICY"] = "active" if is_spinning else "passive"
        if is_spinning:
            os.environ.pop("GOMP_SPINCOUNT", None)
        else:
            os.environ["GOMP_SPINCOUNT"] = "0"
        _State.spin = is_spinning
        return True


def _has_libgomp() -> bool:
    return any(Path(path).name.startswith("libgomp") for path in loaded_libraries())


def _open(path: str, origin: Origin, duplicates: tuple[str, ...] = ()) -> OpenMP | None:
    """Load the library; None if that fails or if it lacks a symbol that kernels need."""
    mode = ctypes.DEFAULT_MODE
    if origin is Origin.LOADED:
        mode |= os.RTLD_NOLOAD
    try:
        library = ctypes.CDLL(path, mode=mode)
        symbols = tuple(
            (name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0)
            for name in OPENMP_SYMBOLS
        )
    except (OSError, AttributeError):
        return None
    return OpenMP(path, origin, symbols, duplicates)


def _bundled(folders: Iterable[str]) -> tuple[str, ...]:
    paths = [
        str(path)
        for folder in folders
        if Path(folder).is_dir()
        for pattern in _WHEEL_PATTERNS
        for path in sorted(Path(folder).glob(pattern))
    ]
    return tuple(dict.fromkeys(paths))
