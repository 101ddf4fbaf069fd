"""The options of the search for schedules: --strategy and --space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from tensorwright.tuning.space import SpaceKind
from tensorwright.tuning.strategies import STRATEGIES, USUAL_STRATEGY, check_strategy

Command = Callable[..., Any]


def searching_options(function: Command) -> Command:
    """Add --strategy, as the name of a strategy, and --space, as a `SpaceKind`."""
    function = click.option(
        "--space",
        type=click.Choice([kind.value for kind in SpaceKind]),
        default=SpaceKind.SKETCHES.value,
        callback=lambda ctx, param, name: SpaceKind(name),
        help="The schedules to try: sketches of generators, templates, or both; sketches.",
    )(function)
    return click.option(
        "--strategy",
        default=USUAL_STRATEGY,
        callback=_read_strategy,
        metavar="NAME",
        help="What proposes schedules: " + ", ".join(STRATEGIES) + ".",
    )(function)


def _read_strategy(ctx: click.Context, param: click.Parameter, name: str) -> str:
    check_strategy(name)
    return name
