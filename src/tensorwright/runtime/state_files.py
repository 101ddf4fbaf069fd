"""Files of a session's state: a ZIP archive of what is said about it, and of an array per state."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tensorwright import base

_ABOUT = "about.json"
_VERSION = 1


def write_state(
    path: str | os.PathLike[str],
    pairs: Sequence[Sequence[str]],
    counts: Mapping[str, int],
    arrays: Mapping[str, base.Array],
) -> None:
    """Write a state; the whole file or nothing.

    pairs    input, output, element type and rank of each state of the model
    counts   numbers of the session
    arrays   by the names of inputs
    Raises:  OutputError if it cannot be written.
    """
    about = {"version": _VERSION, **counts, "pairs": pairs}
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(_ABOUT, json.dumps(about, indent=1))
        for name, array in arrays.items():
            member = io.BytesIO()
            dense = np.ascontiguousarray(array)
            is_short = array.dtype == base.DType.BF16.numpy
            plain = dense.view(np.uint16) if is_short else dense
            np.lib.format.write_array(member, plain, allow_pickle=False)
            archive.writestr(f"state/{name}.npy", member.getvalue())
    base.write_atomically(path, content.getvalue())


def read_state(
    path: str | os.PathLike[str], pairs: Sequence[Sequence[str]]
) -> tuple[dict[str, Any], dict[str, base.Array]]:
    """The numbers and the arrays of a file of `write_state`; BF16 comes as 16-bit numbers.

    pairs   those of the model that continues
    Raises:  InputError for a file that is none, is of another version, or of another model.
    """
    where = f"file {path}"
    try:
        with zipfile.ZipFile(Path(path)) as archive:
            about = json.loads(archive.read(_ABOUT))
            if about["version"] != _VERSION:
                raise _refusal(where, f"it is of version {about['version']}, not {_VERSION}")
            if about["pairs"] != pairs:
                theirs = ", ".join(f"{pair[0]}" for pair in about["pairs"])
                raise _refusal(where, f"it is the state of another model: {theirs}")
            members = [name for name in archive.namelist() if name != _ABOUT]
            arrays = {
                name.removeprefix("state/").removesuffix(".npy"): np.lib.format.read_array(
                    io.BytesIO(archive.read(name)), allow_pickle=False
                )
                for name in members
            }
            counts = {"steps": int(about["steps"]), "written": int(about.get("written", 0))}
    except FileNotFoundError:
        raise _refusal(where, "there is no such file") from None
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise _refusal(where, f"it holds no state of a session ({error})") from None
    return counts, arrays


def _refusal(where: str, reason: str) -> base.InputError:
    return base.InputError(
        stage="run",
        where=where,
        reason=reason,
        remedy="give a file that session.save wrote for this model",
    )
