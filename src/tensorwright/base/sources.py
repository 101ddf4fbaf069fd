"""A digest of this package's own sources: part of the keys of what is kept on the disk."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tensorwright.base.errors import TensorwrightError
from tensorwright.base.files import make_folder, write_atomically
from tensorwright.base.knobs import HOME

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
