"""Pages of the reference that are written from the code: commands, settings, names.

Tables of the page `docs/cli.md` stand between marks, and `with_tables` prints them from the same
declarations; a test compares the page with it, and writes it with `--golden-update`.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Iterator

import click

import tensorwright
from tensorwright.base import ERROR_KINDS, KNOBS
from tensorwright.cli.group import LazyGroup

PAGES = ("commands", "settings", "names")
MARKED = re.compile(
    r"^(<!-- printed: (\w+) -->\n).*?(?=^<!-- end -->$)", flags=re.MULTILINE | re.DOTALL
)
SHARED = 4  # an option that so many commands have with one text has a row


def page(name: str) -> str:
    """The text of one of `PAGES`, as Markdown."""
    writers = {"commands": _commands, "settings": _settings, "names": _names}
    return "\n".join(writers[name]()) + "\n"


def _commands() -> Iterator[str]:
    yield "# Commands\n"
    yield "What `tensorwright COMMAND --help` prints. [This page](../docs/cli.md) explains more.\n"
    for context in _contexts():
        yield f"## {context.command_path}\n"
        yield f"```text\n{context.get_help()}\n```\n"


def _contexts(outer: click.Context | None = None) -> Iterator[click.Context]:
    """A context for each command that is not a group, in the order of the program's help."""
    outer = outer or click.Context(LazyGroup("tensorwright"), info_name="tensorwright")
    if not isinstance(outer.command, click.Group):
        yield outer
        return
    for name in outer.command.list_commands(outer):
        command = outer.command.get_command(outer, name)
        if command is not None:
            yield from _contexts(click.Context(command, outer, name))


def with_tables(page: str) -> str:
    """A page with the tables between its marks as the code says them."""
    writers = {"commands": _command_rows, "options": _option_rows, "kinds": _kind_rows}
    return MARKED.sub(lambda mark: mark[1] + "".join(map(_row, writers[mark[2]]())), page)


def _row(cells: tuple[str, ...]) -> str:
    texts = (" ".join(cell.split()).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(texts)} |\n"


def _command_rows() -> Iterator[tuple[str, ...]]:
    """The first paragraph of each command's help, and its first example."""
    yield from (("command", "", "example"), ("---", "---", "---"))
    for context in _contexts():
        text = inspect.cleandoc(context.command.help or "")
        example = text.partition("\nExample: ")[2].partition("\n")[0]
        name = context.command_path.removeprefix("tensorwright ")
        yield f"`{name}`", text.partition("\n\n")[0], f"`{example}`"


def _option_rows() -> Iterator[tuple[str, ...]]:
    """The options that many commands have with one text."""
    texts: defaultdict[str, list[str]] = defaultdict(list)
    for context in _contexts():
        for option in context.command.params:
            if isinstance(option, click.Option) and option.help:
                texts[f"{max(option.opts, key=len)} {option.metavar or ''}"].append(option.help)
    yield from (("option", ""), ("---", "---"))
    for spelling, helps in texts.items():
        usual = max(helps, key=helps.count)
        if helps.count(usual) >= SHARED:
            yield f"`{spelling.strip()}`", usual


def _kind_rows() -> Iterator[tuple[str, ...]]:
    """The kinds of errors by their exit codes."""
    yield from (("code", "kind", "meaning"), ("---", "---", "---"))
    for kind in ERROR_KINDS:
        meaning = inspect.cleandoc(kind.__doc__ or "").partition("\n")[0]
        yield f"{kind.exit_code}", f"`{kind.__name__}`", meaning


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
