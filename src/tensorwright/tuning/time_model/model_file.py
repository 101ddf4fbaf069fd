"""A time model as a file: plain arrays (.npz, nothing pickled), written whole or not at all.

    about      JSON as bytes: {"kind": "tensorwright time model", "schema": 1, "tool": "0.1.0",
               "rows": "9f3c...", "content": "77ab...", "policy": {"caution": 0.5, "margin": 0.1},
               "statistics": {...}}
    median_starts, median_features, median_children, median_values     see `CompactTrees`
    upper_starts, ...

`rows` is a digest of the names of the rows' columns: trees that ask for others are refused.
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
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import RecordError, write_atomically
from tensorwright.records import TOOL_VERSION
from tensorwright.tuning.time_model.compact_trees import CompactTrees
from tensorwright.tuning.time_model.model import Policy, TimeModel
from tensorwright.tuning.time_model.rows import ROW_DIGEST, ROW_NAMES

KIND = "tensorwright time model"
SCHEMA = 1
MOST_BYTES = 3_000_000
"""The largest file that belongs into the package."""

_FORESTS = ("median", "upper")
_ARRAYS = {
    "starts": np.dtype("<u4"),
    "features": np.dtype("<u2"),
    "children": np.dtype("<u2"),
    "values": np.dtype("<f4"),
}
_Arrays = Mapping[str, NDArray[Any]]


def save_time_model(model: TimeModel, path: str | os.PathLike[str]) -> None:
    """Write a model to a file; equal models give equal files.  Raises: OutputError."""
    arrays = {
        f"{forest}_{name}": getattr(trees, name).astype(kind)
        for forest, trees in (("median", model.median), ("upper", model.upper))
        for name, kind in _ARRAYS.items()
    }
    about: dict[str, Any] = {
        "kind": KIND,
        "schema": SCHEMA,
        "tool": TOOL_VERSION,
        "rows": ROW_DIGEST,
        "policy": asdict(model.policy),
        "statistics": dict(model.statistics),
    }
    about["content"] = _digest(about, arrays)
    text = json.dumps(about, allow_nan=False, sort_keys=True).encode()
    buffer = io.BytesIO()
    np.savez_compressed(buffer, about=np.frombuffer(text, np.uint8), **arrays)
    write_atomically(path, buffer.getvalue())


def load_time_model(path: str | os.PathLike[str]) -> TimeModel:
    """Read what `save_time_model` wrote.

    Raises:  RecordError for a file that cannot be read, is damaged, comes from another version, or
             was trained on other rows.
    """
    about, arrays = _read(path)
    if about.get("kind") != KIND:
        raise _error(path, "it is no time model")
    if about.get("schema") != SCHEMA:
        raise _error(path, f"schema {about.get('schema')!r}; this version reads {SCHEMA}")
    if about.get("content") != _digest(about, arrays):
        raise _error(path, "it is damaged: the digest of its content is another one")
    if about.get("rows") != ROW_DIGEST:
        raise _error(path, f"it was trained on other rows, by version {about.get('tool')!r}")
    try:
        return TimeModel(
            _trees(arrays, "median"),
            _trees(arrays, "upper"),
            Policy(**about["policy"]),
            about["statistics"],
        )
    except RecordError as error:
        raise _error(path, f"{error.where}: {error.reason}") from None
    except (KeyError, TypeError) as error:
        raise _error(path, f"a field is missing, or is not what it should be: {error}") from None


def model_digest(model: TimeModel) -> str:
    """A short text that another model does not have: for caches of what one has chosen."""
    digest = hashlib.sha256(repr((ROW_DIGEST, model.policy)).encode())
    for trees in (model.median, model.upper):
        for name in _ARRAYS:
            digest.update(getattr(trees, name).tobytes())
    return digest.hexdigest()[:16]


def _trees(arrays: _Arrays, forest: str) -> CompactTrees:
    parts = [arrays[f"{forest}_{name}"] for name in _ARRAYS]
    for part, kind in zip(parts, _ARRAYS.values(), strict=True):
        if part.dtype != kind:
            raise TypeError(f"an array of {part.dtype}, not {kind}")
    starts, features, children, values = (np.ascontiguousarray(part) for part in parts)
    return CompactTrees(len(ROW_NAMES), starts, features, children, values)


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], _Arrays]:
    try:
        with np.load(io.BytesIO(Path(path).read_bytes()), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(arrays.pop("about").tobytes())
    except OSError as error:
        raise _error(path, error.strerror or str(error)) from None
    except _UNREADABLE as error:
        raise _error(path, f"it cannot be read as one: {error}") from None
    if not isinstance(about, dict):
        raise _error(path, "it is no time model")
    return about, arrays


_UNREADABLE = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,  # a file of one array, which is no archive
    EOFError,
    OverflowError,
    RuntimeError,  # a damaged header may ask for a password, or another compression
    SyntaxError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
)


def _digest(about: Mapping[str, Any], arrays: _Arrays) -> str:
    """Of the arrays and of what is said about them, but for the digest itself."""
    told = {name: value for name, value in about.items() if name != "content"}
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        digest.update(arrays[name].tobytes())
    return digest.hexdigest()[:32]


def _error(path: str | os.PathLike[str], reason: str) -> RecordError:
    return RecordError(
        stage="time model",
        where=f"file {path}",
        reason=reason,
        remedy="install tensorwright again, or train the model again",
    )
