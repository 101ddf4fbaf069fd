"""`tensorwright knobs`: the settings, their values here, and how to set them."""

from __future__ import annotations

import os
from typing import Any

import click

from tensorwright.base import KNOBS, Knob


@click.command()
def command() -> None:
    """List the settings: the environment variable, its value here, what it means.

    Example: tensorwright knobs
    """
    width = max(len(knob.variable) for knob in KNOBS)
    for knob in KNOBS:
        mark = "set" if os.environ.get(knob.variable) else "default"
        click.echo(f"{knob.variable:{width}}  {format_value(knob)} ({mark})")
        click.echo(f"{'':{width}}  {knob.doc}")


def format_value(knob: Knob[Any]) -> str:
    """The present value of a knob, as a person would write it."""
    value = knob.get()
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, frozenset):
        return ",".join(sorted(value)) or "none"
    return "none" if value is None else str(value)
