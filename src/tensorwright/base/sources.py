"""A digest of this package's own sources: part of the keys of what is kept on the disk."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path


@functools.cache
def source_digest(*folders: str) -> str:
    """A digest of the Python files in some folders of the package, "codegen" or "tuning/space"."""
    digest = hashlib.sha256()
    root = Path(__file__).parent.parent
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()
