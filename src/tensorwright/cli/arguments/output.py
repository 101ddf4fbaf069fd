"""Check, before the work, that a command can write its files, so that no work is lost.

A command must not overwrite a file that it reads, so callers also name what the command reads.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import click

from tensorwright.base import OutputError, TensorwrightError, check_replaceable, output_error
from tensorwright.cli.arguments.options import ProgramKind, is_reference, kind_of

_MODEL_FILES = "tensorwright.graph.imports"  # imported only when needed: it imports onnx

Name = str | os.PathLike[str]


def check_writable(path: Name | None, *reads: Name | None) -> None:
    """Refuse a file that the command could not write at its end; an existing file stays as it is.

    path    None if no file is written
    reads   what the command reads, as on the command line: files, programs, NAME=FILE
    """
    if path is None:
        return
    check_replaceable(path)
    target = Path(path)
    _refuse_what_is_read(target, *reads)
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name[:64]}."):
            pass
    except OSError as error:
        raise output_error(target, error) from error


def check_executable(path: str, *reads: Name | None) -> None:
    """Check a file as `check_writable` does, for an executable."""
    target = Path(path)
    if target.suffix.lower() == ".onnx":
        raise OutputError(
            stage="cli",
            where=f"file {path}",
            reason="the command writes an executable, not an ONNX file",
            remedy=f"name it .tw:\n  -o {target.with_suffix('.tw')}",
        )
    check_writable(path, *reads)


def _refuse_what_is_read(target: Path, *reads: Name | None) -> None:
    """Raise an OutputError if the command reads the file that it is to write."""
    if not target.exists():
        return
    for word in filter(None, map(_text, reads)):
        if any(each.exists() and target.samefile(each) for each in _files_of(word)):
            raise OutputError(
                stage="cli",
                where=f"file {target}",
                reason=f"it is read for {word}, and would be lost",
                remedy="give another name",
            )


def _text(name: Name | None) -> str:
    return "" if name is None else os.fspath(name)


def _files_of(word: str) -> Iterator[Path]:
    """The files that a command may read because of a word of the command line."""
    yield Path(word)
    if "=" in word:
        yield Path(word.partition("=")[2])
    if is_reference(word):
        yield from _files_of_module(word.rpartition(":")[0])
    elif Path(word).is_file() and kind_of(word) is ProgramKind.MODEL:
        yield from _external_files(word)


def _files_of_module(name: str) -> Iterator[Path]:
    """The files in which Python looks for a module."""
    yield Path(name)
    for folder in ("", *sys.path):
        path = Path(folder, *name.split("."))
        yield path.with_name(f"{path.name}.py")
        yield path / "__init__.py"


def _external_files(model: str) -> tuple[Path, ...]:
    """The files that hold the weights of a model; none if the file is not a model.

    The import of the model reports that error later.
    """
    try:
        files: tuple[Path, ...] = importlib.import_module(_MODEL_FILES).external_files(model)
    except TensorwrightError:
        return ()
    return files


_EVERY_S = 5.0


class ProgressLines:
    """Prints the progress to the error stream every few seconds.

    what   the plural of what is counted: "rules"
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._start = self._last = time.monotonic()
        self._total = -1

    def show(self, done: int, total: int, here: int | None = None, remark: str = "") -> None:
        """Print how many are done and how long the rest takes, if the last line is old enough.

        here   how many of `done` this run did; by default all
        A new total begins a new piece of work.
        """
        now = time.monotonic()
        if total != self._total:
            self._total, self._start = total, now
        if now - self._last < _EVERY_S:
            return
        self._last = now
        passed_s = now - self._start
        pace_s = passed_s / max(1, done if here is None else here)
        times = f"{duration(passed_s)} passed, {duration(pace_s * (total - done))} left"
        click.echo(f"{done}/{total} {self._what}{remark}, {times}", err=True)


def duration(seconds: float) -> str:
    """A duration for people: "2 min 05 s"; "0 s" if it is negative."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
