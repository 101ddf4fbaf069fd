"""`tensorwright cache`: list and clear the caches on the disk."""

from __future__ import annotations

from dataclasses import dataclass

import click

from tensorwright import runtime
from tensorwright.base import knobs
from tensorwright.cli.printing import print_table

_NAMES = ("executables", "kernels", "choices")


@dataclass(frozen=True, slots=True)
class _Kept:
    """A cache, and the work that its entries save."""

    name: str
    saves: str
    cache: runtime.KernelCache | runtime.ExecutableCache


def _caches() -> tuple[_Kept, ...]:
    executables, kernels, choices = _NAMES
    return (
        _Kept(executables, "compiling a network again", runtime.default_executable_cache()),
        _Kept(kernels, "building a kernel again", runtime.default_cache()),
        _Kept(choices, "choosing a schedule again", runtime.named_cache(choices)),
    )


@click.group()
def command() -> None:
    """Show what is kept on the disk, and clear it."""


@command.command("list")
def list_command() -> None:
    """List the caches: how many entries they have, their bytes, and what they save.

    Example: tensorwright cache list
    """
    cells = [
        (each.name, str(each.cache.count()), f"{each.cache.size_bytes() / 1e6:.1f}", each.saves)
        for each in _caches()
    ]
    print_table(("cache", "entries", "MB", "saves"), cells)
    click.echo(f"in {knobs.HOME.get()}; at most {knobs.EXECUTABLE_CACHE.get()} MB of executables")


@command.command("clear")
@click.argument("names", nargs=-1, type=click.Choice(_NAMES))
def clear_command(names: tuple[str, ...]) -> None:
    """Empty the caches of these names, or all. Records of measurements stay.

    Example: tensorwright cache clear
             tensorwright cache clear executables
    """
    for each in _caches():
        if not names or each.name in names:
            size_bytes, count = each.cache.size_bytes(), each.cache.count()
            each.cache.clear()
            click.echo(f"{each.name}: {count} entries removed, {size_bytes / 1e6:.1f} MB")
