"""The options of the search for schedules: --strategy and --space.

The options of the cost model of a session: --features, --model, --fading, --start.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from tensorwright.records import is_store
from tensorwright.tuning.features import FEATURE_SETS
from tensorwright.tuning.learning import MODELS, USUAL, Learning, RecordedStart
from tensorwright.tuning.models import Fading
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


RECORDS = "records"


def read_start(
    ctx: click.Context, param: click.Parameter, text: str | None
) -> Path | RecordedStart | None:
    """Read --start: a file with a model, a record store, or "records" for the store in use."""
    if text is None or text == RECORDS:
        return None if text is None else RecordedStart()
    path = Path(text)
    if not path.is_file():
        raise click.BadParameter(f"there is no file {text!r}.", ctx, param)
    return RecordedStart(path) if is_store(path) else path


def learning_options(function: Command) -> Command:
    """Add the options; the command gets them as one argument, `learning`."""

    @click.option(
        "--features",
        default=USUAL.features,
        show_default=True,
        metavar="NAME",
        help=f"The features that describe programs to the cost model: {', '.join(FEATURE_SETS)}.",
    )
    @click.option(
        "--model",
        default=USUAL.model,
        show_default=True,
        metavar="NAME",
        help=f"The cost model: {', '.join(MODELS)}.",
    )
    @click.option(
        "--fading",
        type=click.Choice([each.value for each in Fading]),
        default=USUAL.fading.value,
        show_default=True,
        help="How the start model gives way to measurements.",
    )
    @click.option(
        "--start",
        callback=read_start,
        metavar="FILE|STORE|records",
        help="The start of the cost model: a kept model, or the records of other workloads in a "
        "record store (records: the store in use); by default the model beside the records.",
    )
    @wraps(function)
    def wrapped(
        *args: Any,
        features: str,
        model: str,
        fading: str,
        start: Path | RecordedStart | None,
        **kwargs: Any,
    ) -> Any:
        learning = Learning(features, model, Fading(fading), start)
        return function(*args, learning=learning, **kwargs)

    return wrapped
