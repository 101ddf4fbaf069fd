"""Pages of the reference that are written from the code: commands, settings, names."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

import tensorwright
from tensorwright.base import KNOBS
from tensorwright.cli.group import LazyGroup

PAGES = ("commands", "settings", "names")


def page(name: str) -> str:
    """The text of one of `PAGES`, as Markdown."""
    writers = {"commands": _commands, "settings": _settings, "names": _names}
    return "\n".join(writers[name]()) + "\n"


def _commands() -> Iterator[str]:
    yield "# Commands\n"
    yield "What `tensorwright COMMAND --help` prints. [This page](../docs/cli.md) explains more.\n"
    group = LazyGroup("tensorwright")
    yield from _described(group, click.Context(group, info_name="tensorwright"))


def _described(command: click.Command, context: click.Context) -> Iterator[str]:
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                yield from _described(inner, click.Context(inner, context, name))
        return
    yield f"## {context.command_path}\n"
    yield f"```text\n{command.get_help(context)}\n```\n"


def _settings() -> Iterator[str]:
    yield "# Settings\n"
    yield "Environment variables. `tensorwright.override(threads=1)` sets one in a scope.\n"
    yield "| variable | meaning |\n|---|---|"
    for knob in sorted(KNOBS, key=lambda each: each.name):
        yield f"| `{knob.variable}` | {knob.doc.replace('|', '/')} |"


def _names() -> Iterator[str]:
    yield "# Names in Python\n"
    for name in sorted(set(tensorwright.__all__) - {"__version__"}):
        value = getattr(tensorwright, name)
        yield f"## tensorwright.{name}\n"
        yield from _documented(name, value)
        if inspect.isclass(value):
            for inner, member in vars(value).items():
                if not inner.startswith("_") and inspect.getdoc(member):
                    yield f"### {name}.{inner}\n"
                    yield from _documented(inner, member)


def _documented(name: str, value: object) -> Iterator[str]:
    if inspect.isfunction(value):
        yield f"```python\n{name}{inspect.signature(value)}\n```\n"
    yield f"```text\n{inspect.getdoc(value)}\n```\n"
