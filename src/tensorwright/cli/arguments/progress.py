"""Print the progress of a long command, and the time that is left."""

from __future__ import annotations

import time

import click

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
