"""A digest of this package's own sources: part of the keys of what is kept on the disk."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

_SUFFIXES = frozenset({".py", ".rules", ".json", ".npz"})


@functools.cache
def source_digest(*folders: str) -> str:
    """A digest of the files in some folders of the package, "codegen" or "tuning/space".

    Of Python files and of what they read: rules, tables and trained models.
    """
    digest = hashlib.sha256()
    root = Path(__file__).parent.parent
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in _SUFFIXES:
                digest.update(path.read_bytes())
    return digest.hexdigest()
