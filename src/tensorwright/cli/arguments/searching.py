"""The options of commands that search for schedules, as `Options` and `Learning` declare them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import click

from tensorwright.base import LaboratoryPart, options_of
from tensorwright.cli.arguments.options import record_options, refuse_given
from tensorwright.records import is_store
from tensorwright.tuning.learning import Learning, RecordedStart
from tensorwright.tuning.models import Fading
from tensorwright.tuning.session import Options
from tensorwright.tuning.strategies import check_strategy, is_guided

Command = Callable[..., Any]
RECORDS = "records"
_PROPOSING = LaboratoryPart("option --proposing", "proposing", "load_proposing_model")


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


def _read_strategy(ctx: click.Context, param: click.Parameter, name: str) -> str:
    check_strategy(name)
    return name


def _read_proposing(ctx: click.Context, param: click.Parameter, text: str | None) -> Any:
    return None if text is None else _PROPOSING.load()(Path(text))


_READERS = {
    "start": read_start,
    "strategy": _read_strategy,
    "proposing": _read_proposing,
    "fading": lambda ctx, param, name: Fading(name),
}
_OF_MODELS = ("proposing", *(each.name for each in options_of(Learning)))


def search_options(function: Command) -> Command:
    """Add the options; the command gets them as one argument, `search`."""

    @wraps(function)
    def wrapped(*args: Any, search: Options, learning: Learning, **kwargs: Any) -> Any:
        if not is_guided(search.strategy):
            because = f"the strategy {search.strategy} does not use a model"
            refuse_given(_OF_MODELS, because=because)
        return function(*args, search=replace(search, learning=learning), **kwargs)

    of_models = record_options(Learning, "learning", _READERS)(wrapped)
    return record_options(Options, "search", _READERS)(of_models)
