"""Keep a graph in two files: its text, and its constants beside it as `.npz`."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from tensorwright.base import ModelError, atomic_writer
from tensorwright.graph.graph import Graph
from tensorwright.graph.text.parse import constants_named, parse
from tensorwright.ops import Array


def save_text(graph: Graph, path: str | Path) -> None:
    """Write `path` and, where the graph has constants, the file of the same name with the suffix
    .npz.

    The arrays are stored as bytes under their position, so that any name and any element type
    survives.
    Raises:  OutputError if a file cannot be written.
    """
    target = Path(path)
    if graph.constants:
        arrays = {
            f"c{position}": np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            for position, array in enumerate(graph.constants.values())
        }
        with atomic_writer(target.with_suffix(".npz")) as stream:
            np.savez(stream, allow_pickle=False, **arrays)
    with atomic_writer(target) as stream:
        stream.write(f"{graph}\n".encode())


def _load_arrays(path: Path, text: str) -> dict[str, Array]:
    named = constants_named(text)
    if not named:
        return {}
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            return {
                constant.name: stored[f"c{position}"]
                .view(constant.type.dtype.numpy)
                .reshape(constant.type.shape)
                for position, constant in enumerate(named)
            }
    except OSError as error:
        reason = f"it cannot be read: {error.strerror or error}"
        raise ModelError(stage="parse", where=f"file {path}", reason=reason) from None
    except (KeyError, ValueError, zipfile.BadZipFile) as error:
        reason = f"it does not hold the constants of the text: {error}"
        raise ModelError(stage="parse", where=f"file {path}", reason=reason) from None


def load_text(path: str | Path) -> Graph:
    """Read what `save_text` wrote.

    Raises:  ModelError if a file cannot be read, the text does not parse or an array has another
             digest.
    """
    source = Path(path)
    try:
        text = source.read_text(encoding="utf-8")
    except OSError as error:
        reason = f"it cannot be read: {error.strerror or error}"
        raise ModelError(stage="parse", where=f"file {source}", reason=reason) from None
    except UnicodeDecodeError:
        raise ModelError(stage="parse", where=f"file {source}", reason="it is not text") from None
    return parse(text, _load_arrays(source.with_suffix(".npz"), text))
