"""What a session learns with: --features, --model, --fading, --start."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from tensorwright.tuning.features import FEATURE_SETS
from tensorwright.tuning.learning import MODELS, USUAL, Learning
from tensorwright.tuning.models import Fading

Command = Callable[..., Any]


def learning_options(function: Command) -> Command:
    """The options as one argument, `learning`."""

    @click.option(
        "--features",
        default=USUAL.features,
        show_default=True,
        metavar="NAME",
        help=f"How programs are described to the cost model: {', '.join(FEATURE_SETS)}.",
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
        help="How what was learned before gives way to measurements.",
    )
    @click.option(
        "--start",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="A kept cost model to start from; the one beside the records if not given.",
    )
    @wraps(function)
    def wrapped(
        *args: Any, features: str, model: str, fading: str, start: Path | None, **kwargs: Any
    ) -> Any:
        learning = Learning(features, model, Fading(fading), start)
        return function(*args, learning=learning, **kwargs)

    return wrapped
