"""Read arrays of inputs and constants from files, and write outputs to files."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tensorwright import base
from tensorwright.runtime import TensorSpec, check_names, random_array

RANDOM = "random"

_NUMPY = b"\x93NUMPY"  # the beginning of a file .npy


def read_inputs(
    given: Sequence[str],
    specs: Sequence[TensorSpec],
    seed: int,
    open_specs: Sequence[TensorSpec],
) -> dict[str, base.Array]:
    """The arrays of the inputs, as the options --input give them.

    specs        the inputs of the executable, with the sizes for which random arrays are drawn
    open_specs   the same inputs with their named sizes, for messages

    Raises:  InputError for a file without an array, for an input that is not given, and for a name
             that is not of an input; UsageError for a text that does not name an input, and for an
             input that two texts name.
    """
    arrays: dict[str, base.Array] = {}
    drawn: set[str] = set()
    seen: set[str] = set()
    for text in given:
        name, equals, source = text.partition("=")
        if equals and name in seen:
            raise base.UsageError(
                stage="cli",
                where=f"--input {text}",
                reason=f"another --input names {name}, too",
                remedy="give one of them",
            )
        seen.add(name)
        if text == RANDOM:
            drawn |= {spec.name for spec in specs}
        elif equals and source == RANDOM:
            drawn.add(name)
        elif equals:
            arrays[name] = _one(read_arrays(source), name, source)
        elif text.endswith(".npz"):
            arrays |= read_arrays(text)
        else:
            raise base.UsageError(
                stage="cli",
                where=f"--input {text}",
                reason="it does not name an input",
                remedy="give NAME=FILE.npy, FILE.npz or random",
            )
    generator = np.random.default_rng(seed)
    for spec in specs:
        if spec.name in drawn and spec.name not in arrays:
            arrays[spec.name] = random_array(spec, generator)
    missing = [spec for spec in open_specs if spec.name not in arrays]
    named = {*arrays, *drawn}
    if named - {spec.name for spec in specs}:
        check_names("input", open_specs, dict.fromkeys(sorted(named)))
    if missing:
        options = " ".join(f"--input {spec.name}=FILE.npy" for spec in missing)
        listed = ", ".join(map(str, missing))
        raise _refusal(
            f"input {missing[0].name}",
            f"it is not given; wanted: {listed}",
            f"give {options}, or --input random",
        )
    return arrays


def read_arrays(path: str) -> dict[str, base.Array]:
    """The arrays of a file: those of .npz with their names, that of .npy with the name "".

    Raises:  InputError for a file that does not exist or has no arrays.
    """
    where = f"file {path}"
    try:
        with Path(path).open("rb") as file:
            if not file.read(len(_NUMPY)).startswith((_NUMPY, b"PK")):
                reason = "it holds no arrays of numbers: NumPy did not write it"
                remedy = "write it with numpy.save or numpy.savez; numpy.loadtxt reads a text"
                raise _refusal(where, reason, remedy)
            file.seek(0)
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return {"": loaded}
            return {name: loaded[name] for name in loaded.files}
    except FileNotFoundError:
        raise _refusal(where, "there is no such file", "check the path") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        is_pickled = "allow_pickle" in str(error)  # which NumPy would have us load nevertheless
        reason = f"it holds no arrays of numbers ({'but objects' if is_pickled else error})"
        raise _refusal(where, reason, "write it with numpy.save or numpy.savez") from None


def check_arrays_path(path: str, names: Sequence[str]) -> None:
    """Refuse a file name whose suffix does not fit these arrays."""
    suffix = Path(path).suffix.lower()
    if suffix == ".npz" or (suffix == ".npy" and len(names) == 1):
        return
    archive = str(Path(path).with_suffix(".npz"))
    reason = "its name ends in neither .npy (one array) nor .npz (arrays by name)"
    if suffix == ".npy":
        reason = f"a .npy file holds one array, and there are {len(names)}: {', '.join(names)}"
    raise base.OutputError(
        stage="cli", where=f"file {path}", reason=reason, remedy=f"name an archive:\n  -o {archive}"
    )


def write_arrays(path: str, arrays: Mapping[str, base.Array]) -> None:
    """Write one array to .npy, or arrays by name to .npz; an error leaves the file as it was."""
    check_arrays_path(path, tuple(arrays))
    content = io.BytesIO()
    if Path(path).suffix.lower() == ".npy":
        (array,) = arrays.values()
        _write_array(content, array)
    else:
        with zipfile.ZipFile(content, "w") as archive:
            for name, array in arrays.items():
                member = io.BytesIO()
                _write_array(member, array)
                archive.writestr(f"{name}.npy", member.getvalue())
    base.write_atomically(path, content.getvalue())


def _write_array(file: io.BytesIO, array: base.Array) -> None:
    np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)


def describe(array: base.Array) -> str:
    """The type and shape of an array, and a summary of its numbers."""
    extents = ", ".join(map(str, array.shape))
    text = f"{array.dtype}({extents})"
    if array.size == 0:
        return text
    if array.dtype.kind == "b":
        return f"{text} {np.count_nonzero(array)} true"
    numbers = array.astype(np.float64)
    return f"{text} least {numbers.min():.6g}, mean {numbers.mean():.6g}, most {numbers.max():.6g}"


def _one(arrays: dict[str, base.Array], name: str, source: str) -> base.Array:
    if name in arrays:
        return arrays[name]
    if len(arrays) == 1:
        return next(iter(arrays.values()))
    reason = f"it holds no array {name}, but " + (", ".join(arrays) or "nothing")
    raise _refusal(f"file {source}", reason, "name one of them, or give the file without a name")


def _refusal(where: str, reason: str, remedy: str) -> base.InputError:
    return base.InputError(stage="cli", where=where, reason=reason, remedy=remedy)
