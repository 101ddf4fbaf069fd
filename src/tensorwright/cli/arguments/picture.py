"""Draw two graphs as a picture with Graphviz, or write them as text if that is not possible."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import click

from tensorwright.base import write_atomically
from tensorwright.graph import Graph
from tensorwright.graph.drawing import difference_dot, difference_text

_PROGRAM = "dot"
_LIMIT_S = 120.0


def read_picture(ctx: click.Context, param: click.Parameter, name: str | None) -> Path | None:
    """Read the name of a picture, which must end in .svg."""
    if name is not None and Path(name).suffix.lower() != ".svg":
        raise click.BadParameter("a picture is an SVG file: name it FILE.svg", ctx, param)
    return None if name is None else Path(name)


def write_picture(path: Path, before: Graph, after: Graph) -> str:
    """Draw two graphs, or write them as a text file of the same name.

    Return a line that says what was written.
    Raises:  OutputError if the file cannot be written.
    """
    program = shutil.which(_PROGRAM)
    if program is None:
        reason = f"Graphviz's {_PROGRAM} is not installed"
    else:
        drawn = _drawn(program, difference_dot(before, after))
        if isinstance(drawn, bytes):
            write_atomically(path, drawn)
            return f"{path}: both graphs, differences in colour"
        reason = drawn
    text = path.with_suffix(".txt")
    write_atomically(text, difference_text(before, after))
    return f"{text}: both graphs as text, without a picture: {reason}"


def _drawn(program: str, source: str) -> bytes | str:
    """The picture, or the reason why there is none."""
    try:
        done = subprocess.run(
            [program, "-Tsvg"],
            input=source.encode(),
            capture_output=True,
            check=False,
            timeout=_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return f"{_PROGRAM} took more than {_LIMIT_S:g} s"
    except OSError as error:
        return f"{_PROGRAM} does not run: {error.strerror}"
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        return f"{_PROGRAM} failed: {lines[0] if lines else f'status {done.returncode}'}"
    return done.stdout
