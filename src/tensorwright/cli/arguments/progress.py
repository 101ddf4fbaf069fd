"""How far a long command is, and the time that is left."""

from __future__ import annotations

import time

import click

_EVERY_S = 5.0


class ProgressLines:
    """Says every few seconds, on the error stream, how far a command is; `what` is counted."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._start = self._last = time.monotonic()
        self._total = -1

    def show(self, done: int, total: int, here: int | None = None, remark: str = "") -> None:
        """So many are done, `here` of them in this run (all by default).

        Another total is another piece of work.
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
    """As people read it: "2 min 05 s"; "0 s" for what is over."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
