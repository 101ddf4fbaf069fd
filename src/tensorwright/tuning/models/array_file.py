"""Trained models as files of plain arrays (.npz, nothing pickled), whole or not at all.

about   JSON as bytes: what kind of model, which schema, by which version, what the model says
        of itself, and `content`, a digest of everything else: so a damaged file is refused
...     the arrays, of the types that they must have
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import RecordError, write_atomically
from tensorwright.records import TOOL_VERSION

Arrays = Mapping[str, NDArray[Any]]

_UNREADABLE = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,  # a file of one array, which is not an archive
    EOFError,
    OverflowError,
    RuntimeError,  # a damaged header may ask for a password, or another compression
    SyntaxError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
)


@dataclass(frozen=True, slots=True)
class ArrayFile:
    """A kind of file.

    name     what it holds: "time model"     schema   the version of its form
    remedy   for a file that is refused
    """

    name: str
    schema: int
    remedy: str

    @property
    def kind(self) -> str:
        """The kind that such a file states."""
        return f"tensorwright {self.name}"

    def save(self, path: str | os.PathLike[str], fields: Mapping[str, Any], arrays: Arrays) -> None:
        """Write one; equal contents give equal files.  Raises: OutputError."""
        about = {"kind": self.kind, "schema": self.schema, "tool": TOOL_VERSION, **fields}
        about["content"] = _digest(about, arrays)
        text = json.dumps(about, allow_nan=False, sort_keys=True).encode()
        buffer = io.BytesIO()
        everything: dict[str, Any] = {"about": np.frombuffer(text, np.uint8), **arrays}
        np.savez_compressed(buffer, **everything)
        write_atomically(path, buffer.getvalue())

    def load(self, path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
        """The fields of a file, and its arrays.

        Raises:  RecordError for a file that cannot be read, is damaged or of another kind.
        """
        try:
            with np.load(io.BytesIO(Path(path).read_bytes()), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            about = json.loads(arrays.pop("about").tobytes())
        except OSError as error:
            raise self.fault(path, error.strerror or str(error)) from None
        except _UNREADABLE as error:
            raise self.fault(path, f"it cannot be read as one: {error}") from None
        if not isinstance(about, dict) or about.get("kind") != self.kind:
            raise self.fault(path, f"it is no {self.name}")
        if about.get("schema") != self.schema:
            reason = f"schema {about.get('schema')!r}; this version reads {self.schema}"
            raise self.fault(path, reason)
        if about.get("content") != _digest(about, arrays):
            raise self.fault(path, "it is damaged: the digest of its content is another one")
        return about, arrays

    def fault(self, path: str | os.PathLike[str], reason: str) -> RecordError:
        """Why a file is refused."""
        return RecordError(stage=self.name, where=f"file {path}", reason=reason, remedy=self.remedy)


def _digest(about: Mapping[str, Any], arrays: Arrays) -> str:
    """A digest of the arrays and of the fields, without the digest itself."""
    told = {name: value for name, value in about.items() if name != "content"}
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        digest.update(arrays[name].tobytes())
    return digest.hexdigest()[:32]
