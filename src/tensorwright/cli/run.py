"""`tensorwright run`: call an executable or a model once, arrays from and to files."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

from tensorwright.base import InputError, UsageError, write_atomically
from tensorwright.cli.arguments.compilation import Compilation, compile_options
from tensorwright.cli.arguments.output import check_writable
from tensorwright.ops import Array
from tensorwright.runtime import Executable, is_executable, load, random_array

RANDOM = "random"


@click.command()
@click.argument("program", metavar="EXECUTABLE|MODEL")
@click.option(
    "--input",
    "given",
    multiple=True,
    metavar="NAME=FILE.npy",
    help="An array for an input: NAME=FILE.npy, NAME=FILE.npz or NAME=random; FILE.npz for all "
    "that it holds; random for all inputs that are not given otherwise.",
)
@click.option("-o", "--output", metavar="OUT.npz", help="Where the outputs go, by name.")
@compile_options
def command(
    program: str,
    given: tuple[str, ...],
    output: str | None,
    how: Compilation,
) -> None:
    """Run an executable once; a model is compiled first.

    Example: tensorwright run model.tw --input x=x.npy -o out.npz
    """
    if output is not None:
        check_writable(output)
    executable = load(program, how.threads) if is_executable(program) else how.finish(program)
    results = executable.run(read_inputs(given, executable, how.seed))
    for name, array in results.items():
        click.echo(f"{name}: {describe(array)}")
    if output is not None:
        write_arrays(output, results)


def read_inputs(given: Sequence[str], executable: Executable, seed: int) -> dict[str, Array]:
    """The arrays that the options name; what is missing is for the executable to refuse.

    Raises:  InputError for a file that holds no array.
    """
    arrays: dict[str, Array] = {}
    drawn: set[str] = set()
    for text in given:
        name, equals, source = text.partition("=")
        if text == RANDOM:
            drawn |= {spec.name for spec in executable.inputs}
        elif equals and source == RANDOM:
            drawn.add(name)
        elif equals:
            arrays[name] = _one(read_arrays(source), name, source)
        elif text.endswith(".npz"):
            arrays |= read_arrays(text)
        else:
            raise UsageError(
                stage="cli",
                where=f"--input {text}",
                reason="it names no input",
                remedy="NAME=FILE.npy, FILE.npz or random",
            )
    generator = np.random.default_rng(seed)
    for spec in executable.inputs:
        if spec.name in drawn and spec.name not in arrays:
            arrays[spec.name] = random_array(spec, generator)
    return arrays


def read_arrays(path: str) -> dict[str, Array]:
    """The arrays of a file: by name from .npz, as "" from .npy.

    Raises:  InputError.
    """
    where = f"file {path}"
    try:
        with Path(path).open("rb") as file:
            found = np.load(file, allow_pickle=False)
            if isinstance(found, np.ndarray):
                return {"": found}
            return {name: found[name] for name in found.files}
    except FileNotFoundError:
        raise _refusal(where, "there is no such file", "check the path") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        reason = f"it holds no arrays of numbers ({error})"
        raise _refusal(where, reason, "write it with numpy.save or numpy.savez") from None


def write_arrays(path: str, arrays: dict[str, Array]) -> None:
    """Write arrays by name, the whole file or nothing.

    Raises:  OutputError.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
            archive.writestr(f"{name}.npy", member.getvalue())
    write_atomically(path, content.getvalue())


def describe(array: Array) -> str:
    """Type, and what the numbers are about."""
    extents = ", ".join(map(str, array.shape))
    text = f"{array.dtype}({extents})"
    if array.size == 0:
        return text
    if array.dtype.kind == "b":
        return f"{text} {np.count_nonzero(array)} true"
    numbers = array.astype(np.float64)
    return f"{text} least {numbers.min():.6g}, mean {numbers.mean():.6g}, most {numbers.max():.6g}"


def _one(arrays: dict[str, Array], name: str, source: str) -> Array:
    if name in arrays:
        return arrays[name]
    if len(arrays) == 1:
        return next(iter(arrays.values()))
    reason = f"it holds no array {name}, but " + (", ".join(arrays) or "nothing")
    raise _refusal(f"file {source}", reason, "name one of them, or give the file without a name")


def _refusal(where: str, reason: str, remedy: str) -> InputError:
    return InputError(stage="cli", where=where, reason=reason, remedy=remedy)
