"""A proposing model as a file: plain arrays (.npz, nothing pickled), written whole or not at all.

    about      JSON as bytes: {"kind": "tensorwright proposing model", "schema": 1, "tool": "0.1.0",
               "columns": "9f3c...", "content": "77ab...", "statistics": {...}}
    starts, features, children, values     see `CompactTrees`

`columns` is a digest of the names of the rows' columns: trees that ask for others are refused.
`content` is one of everything else: so a damaged file is refused, too.
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
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import RecordError, write_atomically
from tensorwright.records import TOOL_VERSION
from tensorwright.tuning.proposing.decisions import COLUMN_DIGEST, COLUMNS
from tensorwright.tuning.proposing.model import ProposingModel
from tensorwright.tuning.time_model import CompactTrees

KIND = "tensorwright proposing model"
SCHEMA = 1

_ARRAYS: dict[str, np.dtype[Any]] = {
    "starts": np.dtype("<u4"),
    "features": np.dtype("<u2"),
    "children": np.dtype("<u2"),
    "values": np.dtype("<f4"),
}
_Arrays = Mapping[str, NDArray[Any]]


def save_proposing_model(model: ProposingModel, path: str | os.PathLike[str]) -> None:
    """Write a model to a file; equal models give equal files.  Raises: OutputError."""
    arrays = {name: getattr(model.trees, name).astype(kind) for name, kind in _ARRAYS.items()}
    about: dict[str, Any] = {
        "kind": KIND,
        "schema": SCHEMA,
        "tool": TOOL_VERSION,
        "columns": COLUMN_DIGEST,
        "statistics": dict(model.statistics),
    }
    about["content"] = _digest(about, arrays)
    text = json.dumps(about, allow_nan=False, sort_keys=True).encode()
    buffer = io.BytesIO()
    np.savez_compressed(buffer, about=np.frombuffer(text, np.uint8), **arrays)
    write_atomically(path, buffer.getvalue())


def load_proposing_model(path: str | os.PathLike[str]) -> ProposingModel:
    """Read what `save_proposing_model` wrote.

    Raises:  RecordError for a file that cannot be read, is damaged, comes from another version, or
             was trained on other columns.
    """
    about, arrays = _read(path)
    if about.get("kind") != KIND:
        raise _error(path, "it is no proposing model")
    if about.get("schema") != SCHEMA:
        raise _error(path, f"schema {about.get('schema')!r}; this version reads {SCHEMA}")
    if about.get("content") != _digest(about, arrays):
        raise _error(path, "it is damaged: the digest of its content is another one")
    if about.get("columns") != COLUMN_DIGEST:
        raise _error(path, f"it was trained on other columns, by version {about.get('tool')!r}")
    try:
        trees = CompactTrees(len(COLUMNS), *(arrays[name] for name in _ARRAYS))
    except RecordError as error:
        raise _error(path, f"{error.where}: {error.reason}") from None
    return ProposingModel(trees, about.get("statistics", {}))


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], _Arrays]:
    try:
        content = io.BytesIO(Path(path).read_bytes())
        with np.load(content, allow_pickle=False) as file:
            arrays = {
                name: file[name].astype(kind.newbyteorder("=")) for name, kind in _ARRAYS.items()
            }
            about = json.loads(file["about"].tobytes())
    except OSError as error:
        raise _error(path, error.strerror or str(error)) from None
    except (
        ValueError, KeyError, EOFError, RecursionError, NotImplementedError,
        zipfile.BadZipFile, zlib.error, struct.error,
    ) as error:  # fmt: skip
        raise _error(path, f"it cannot be read ({type(error).__name__}: {error})") from None
    if not isinstance(about, dict):
        raise _error(path, "it is no proposing model")
    return about, arrays


def _digest(about: Mapping[str, Any], arrays: _Arrays) -> str:
    """Of everything but the digest itself."""
    rest = {name: value for name, value in about.items() if name != "content"}
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode())
    for name, kind in _ARRAYS.items():
        digest.update(name.encode() + arrays[name].astype(kind).tobytes())
    return digest.hexdigest()[:32]


def _error(path: str | os.PathLike[str], reason: str) -> RecordError:
    return RecordError(
        stage="proposing model",
        where=f"file {path}",
        reason=reason,
        remedy="train it again, or search without it",
    )
