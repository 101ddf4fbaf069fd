"""What several commands take: options, and texts that become values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from tensorwright.base import UsageError, cpu_target, knobs

Command = Callable[..., Any]
Shapes = Mapping[str, Sequence[int] | int]

THREADS = click.IntRange(min=1, max=1024)
_LARGEST_EXTENT = (1 << 31) - 1
_LARGEST_SEED = (1 << 63) - 1
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
        if max(numbers, default=0) > _LARGEST_EXTENT:
            raise click.BadParameter(f"an extent of {name} is above {_LARGEST_EXTENT}", ctx, param)
        found[name] = numbers if extents.startswith("[") else numbers[0]
        place = match.end()
    return found


class Minutes(click.FloatRange):
    """A finite number of minutes, 0 or more."""

    name = "minutes"

    def __init__(self) -> None:
        super().__init__(min=0)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """As click does; "nan" and "inf" are no budgets."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is no number of minutes.", param, ctx)
        return number


def refuse_given(names: Iterable[str], because: str) -> None:
    """Refuse options of the running command that say nothing about what it was given.

    names     of parameters, as the function of the command has them
    because   why they say nothing: "m.tw is an executable, which is compiled already"
    Raises:   UsageError where one of them stands on the command line; not for usual values.
    """
    context = click.get_current_context()
    for parameter in context.command.params:
        if parameter.name not in names:
            continue
        if context.get_parameter_source(parameter.name) is not ParameterSource.COMMANDLINE:
            continue
        option = max((*parameter.opts, *parameter.secondary_opts), key=len)
        raise UsageError(
            stage="cli",
            where=f"option {option}",
            reason=f"it says nothing here: {because}",
            remedy="leave it out",
        )


def model_argument(function: Command) -> Command:
    """MODEL: a path, light:NAME, zoo:NAME or wild:NAME."""
    return click.argument("model", metavar="MODEL")(function)


def program_argument(function: Command) -> Command:
    """PROGRAM: a MODEL, or a tensor expression of the user's."""
    return click.argument("program", metavar="MODEL|MODULE:EXPR")(function)


def output_option(function: Command) -> Command:
    """-o OUT: the executable that is written."""
    return click.option(
        "-o", "--output", "output", required=True, metavar="OUT", help="The file to write."
    )(function)


def machine_options(function: Command) -> Command:
    """--target and --threads."""
    function = click.option(
        "--threads",
        type=THREADS,
        help="Threads of the kernels; all cores if not given.",
    )(function)
    return target_option(function)


def target_option(function: Command) -> Command:
    """--target, as a CpuTarget: there is code for processors only."""
    return click.option(
        "--target",
        callback=lambda ctx, param, name: cpu_target(name or knobs.TARGET.get()),
        help="What to compile for; this machine if not given.",
    )(function)


def shapes_option(function: Command) -> Command:
    """--input-shapes."""
    return click.option(
        "--input-shapes",
        "input_shapes",
        callback=read_shapes,
        metavar='"x:[1,3,224,224]"',
        help="Shapes of inputs, or extents of dimensions, that the model leaves open.",
    )(function)


def constants_option(function: Command) -> Command:
    """--constants, as a Path."""
    return click.option(
        "--constants",
        type=click.Path(path_type=Path),
        metavar="FILE.npz",
        help="Values of the constants of a tensor expression, by name.",
    )(function)


def records_option(function: Command) -> Command:
    """--records."""
    return click.option(
        "--records",
        type=click.Path(path_type=Path),
        help="The record store; the user's own if not given.",
    )(function)


def budget_options(function: Command) -> Command:
    """--minutes and --trials."""
    function = click.option(
        "--trials", type=click.IntRange(min=1), help="Candidates to measure, in all."
    )(function)
    return click.option(
        "--minutes", type=Minutes(), help="Time for tuning; 10 if nothing is given."
    )(function)


def seed_option(function: Command) -> Command:
    """--seed."""
    return click.option(
        "--seed",
        type=click.IntRange(min=0, max=_LARGEST_SEED),
        default=knobs.SEED.get,
        help="Seed of every random choice.",
    )(function)
