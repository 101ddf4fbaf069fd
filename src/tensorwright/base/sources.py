"""Digests of this package's sources and of large data; the laboratory, if it is installed.

Digests are part of the keys of what is kept on the disk.  `tensorwright-lab` is a second package:
networks, competitors, other ways to search.  The compiler does not import it, but loads its modules
by name.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import json
import mmap
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tensorwright.base.errors import MachineError, TensorwrightError
from tensorwright.base.files import make_folder, write_atomically
from tensorwright.base.knobs import HOME
from tensorwright.base.machines import available_cores

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


_SUFFIXES = (".py", ".rules", ".json", ".npz")
_ROOT = Path(__file__).parent.parent
_SETTLED_S = 2.0
"""A file that was written more recently may be written again without a change of its times."""
EXTENSIONS: set[str] = set()
"""What this process has added to the package itself: the user's rules and templates. Their code
is in no digest, so whole executables are not kept while there are some."""
_DEPENDENCIES = ("llvmlite", "lightgbm", "ml_dtypes", "numpy", "onnx", "scipy")


@functools.cache
def source_digest(*folders: str) -> str:
    """A digest of the files in some folders of the package, "codegen" or "tuning/space"; in all
    where none is named.

    Of Python files and of what they read: rules, tables and trained models.
    """
    digest = hashlib.sha256()
    for folder in folders or ("",):
        for path in sorted((_ROOT / folder).rglob("*")):
            if path.suffix in _SUFFIXES:
                digest.update(path.read_bytes())
    return digest.hexdigest()


@functools.cache
def package_digest() -> str:
    """A digest of the whole package, and of the versions of what it computes with.

    Reading a thousand files takes longer than asking for their sizes and times, so the digest is
    kept in the folder of the knob `home` beside those, and computed where they differ.
    """
    lines, newest_ns = zip(*_states(_ROOT), strict=True)
    if time.time_ns() - max(newest_ns) < _SETTLED_S * 1e9:
        return f"{source_digest()}:{_versions()}"
    state = hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()
    path = HOME.get() / "sources.json"
    with suppress(OSError, ValueError, TypeError, KeyError):
        kept = json.loads(path.read_text())
        if kept["state"] == state:
            return f"{kept['digest']}:{_versions()}"
    digest = source_digest()
    with suppress(TensorwrightError):
        make_folder(path.parent)
        write_atomically(path, json.dumps({"state": state, "digest": digest}))
    return f"{digest}:{_versions()}"


def _states(folder: Path) -> Iterator[tuple[str, int]]:
    """A line for each source file, which changes with the file, and when that was."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    yield from _states(Path(entry.path))
            elif entry.name.endswith(_SUFFIXES):
                s = entry.stat()
                line = f"{entry.path} {s.st_size} {s.st_mtime_ns} {s.st_ctime_ns} {s.st_ino}"
                yield line, s.st_ctime_ns


def _versions() -> str:
    """The versions of the packages with which this one computes, as they were installed."""
    installed = []
    for folder in sys.path:
        with suppress(OSError):
            for path in Path(folder or ".").iterdir():
                stem, _, kind = path.name.rpartition(".")
                if kind == "dist-info" and stem.partition("-")[0].lower() in _DEPENDENCIES:
                    installed.append(stem)
    return ",".join(installed)


LABORATORY = "tensorwright_lab"
SUITE_LOADERS = {"light": "load_light", "zoo": "build", "wild": "load_wild"}
"""The kinds of networks that commands call KIND:NAME, with their functions in `zoo`."""


def has_laboratory() -> bool:
    """Whether the package is installed."""
    return importlib.util.find_spec(LABORATORY) is not None


def require_laboratory(where: str) -> None:
    """Refuse a part of the package, named by `where`, if the package is not installed.

    Raises:  MachineError.
    """
    if not has_laboratory():
        raise MachineError(
            stage="laboratory",
            where=where,
            reason="it is part of the package tensorwright-lab, which is not installed",
            remedy="pip install ./lab, in the folder of tensorwright's sources",
        )


@dataclass(frozen=True, slots=True)
class LaboratoryPart:
    """Something of the package that a user asks for by name, imported when it is asked for.

    where       what the user asks for: "strategy grid"
    module      of the package              attribute   what it is in that module
    """

    where: str
    module: str
    attribute: str

    def load(self) -> Any:
        """Import it.

        Raises:  MachineError where the package is not installed.
        """
        require_laboratory(self.where)
        return getattr(importlib.import_module(f"{LABORATORY}.{self.module}"), self.attribute)
