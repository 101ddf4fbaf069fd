"""What several commands take: options, and texts that become values."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from tensorwright.base import knobs

Command = Callable[..., Any]

_SHAPE = re.compile(r"\s*([^\s\[\],;][^\[\],;]*?)\s*[:=]\s*(\[[\d\s,x]*\]|\d+)\s*(?:[,;]|$)")


def read_shapes(
    ctx: click.Context, param: click.Parameter, text: str | None
) -> dict[str, tuple[int, ...] | int] | None:
    """Read "x:[1,3,224,224]", several with commas between, or "N:8" for an open dimension."""
    if text is None:
        return None
    found: dict[str, tuple[int, ...] | int] = {}
    place = 0
    while place < len(text):
        match = _SHAPE.match(text, place)
        if match is None:
            raise click.BadParameter(f'{text!r} is not of the form "x:[1,3,224,224]"', ctx, param)
        name, extents = match.groups()
        numbers = tuple(int(digits) for digits in re.findall(r"\d+", extents))
        found[name] = numbers if extents.startswith("[") else numbers[0]
        place = match.end()
    return found


def model_argument(function: Command) -> Command:
    """MODEL: a path, light:NAME or zoo:NAME."""
    return click.argument("model", metavar="MODEL")(function)


def output_option(function: Command) -> Command:
    """-o OUT: the executable that is written."""
    return click.option(
        "-o", "--output", "output", required=True, metavar="OUT", help="The file to write."
    )(function)


def machine_options(function: Command) -> Command:
    """--target and --threads."""
    function = click.option(
        "--threads",
        type=click.IntRange(min=1),
        help="Threads of the kernels; all cores if not given.",
    )(function)
    return click.option("--target", help="What to compile for; this machine if not given.")(
        function
    )


def shapes_option(function: Command) -> Command:
    """--input-shapes."""
    return click.option(
        "--input-shapes",
        "input_shapes",
        callback=read_shapes,
        metavar='"x:[1,3,224,224]"',
        help="Shapes of inputs, or extents of dimensions, that the model leaves open.",
    )(function)


def records_option(function: Command) -> Command:
    """--records."""
    return click.option(
        "--records",
        type=click.Path(path_type=Path),
        help="The record store; the user's own if not given.",
    )(function)


def seed_option(function: Command) -> Command:
    """--seed."""
    return click.option("--seed", type=click.IntRange(min=0), help="Seed of every random choice.")(
        function
    )


def seed_of(seed: int | None) -> int:
    """The seed that was asked for, else that of the knob."""
    return knobs.SEED.get() if seed is None else seed
