"""Commands that search for schedules: their options, and what they do around the search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any

import click

from tensorwright.base import LaboratoryPart, option, options_of
from tensorwright.cli.arguments.machine import THIS_MACHINE, Workers
from tensorwright.cli.arguments.options import Command, Compilation, compile_options, refuse_given
from tensorwright.cli.group import end_interrupted, same_command
from tensorwright.cli.printing import print_result
from tensorwright.drivers.tune import setting_of
from tensorwright.records import RecordStore, Setting, is_store, opened
from tensorwright.report import LiveReport
from tensorwright.tuning import session
from tensorwright.tuning.learning import Learning, RecordedStart
from tensorwright.tuning.models import Fading
from tensorwright.tuning.strategies import check_strategy, is_guided

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


_USUAL = session.Options()


@dataclass(frozen=True, kw_only=True)
class Searching(Compilation):
    """The options of a command that searches, and what such commands do around the search."""

    search: session.Options = _USUAL
    workers: Workers = THIS_MACHINE
    report: str | None = option(
        None,
        "Measure what was reached, and write a report; FILE.json has its data alone.",
        metavar="FILE.html",
    )
    live: bool = option(
        default=False, text="Show the search in a browser while it runs, on this machine only."
    )
    quiet: bool = option(default=False, text="Show no progress.")

    @contextmanager
    def opened_page(self, name: str) -> Iterator[LiveReport | None]:
        """With --live, serve the page of a search while the block runs, and print its address."""
        if not self.live:
            yield None
            return
        page = LiveReport(name, same_command())
        click.echo(f"live: {page.address}", err=True)
        try:
            yield page
        finally:
            page.stop()

    @contextmanager
    def opened(
        self, page: LiveReport | None, *, spare: bool = False
    ) -> Iterator[tuple[RecordStore, Setting, session.Options]]:
        """The store, the setting and the options of the session, while the block runs."""
        with (
            opened(self.records, create=True, spare=spare) as store,
            self.workers.opened() as farm,
        ):
            self.workers.check(self.machine)
            setting = setting_of(self.machine, self.threads, farm)
            self.workers.warn_if_unfit(setting.target, setting.threads)
            own = (*session.choose_callbacks(self.quiet), *self.workers.callbacks())
            shown = (*own, *filter(None, [page]))
            yield store, setting, replace(self.search, seed=self.seed, callbacks=shown, farm=farm)

    def end(self, result: session.TuneResult, heading: str, names: Sequence[str]) -> None:
        """Print the result; the status is that of Ctrl-C if that has ended the search."""
        print_result(result, heading, names, is_quiet=self.quiet)
        if result.is_interrupted:
            end_interrupted(result.resume_text)


def search_options(record: type[Searching]) -> Callable[[Command], Command]:
    """Add the options of a record; the command gets it as the argument `how`."""

    def add(function: Command) -> Command:
        @wraps(function)
        def wrapped(*args: Any, how: Searching, **kwargs: Any) -> Any:
            if not is_guided(how.search.strategy):
                because = f"the strategy {how.search.strategy} does not use a model"
                refuse_given(_OF_MODELS, because=because)
            return function(*args, how=how, **kwargs)

        return compile_options(wrapped, record, _READERS)

    return add
