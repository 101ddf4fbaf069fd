"""The options of commands that hand out work: to a farm, or to processes of this machine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click

from tensorwright.base import Target
from tensorwright.cli.arguments.machine import LoadCallback, check_before_measuring
from tensorwright.farm import Farm, FarmSecurity, LocalFarm, connect, opened_farm
from tensorwright.tuning.session import Callback, check_measures_here

OpenFarm = Callable[[], Farm]
"""Opens the farm that does the units of a command: processes of this machine, or workers."""


@dataclass(frozen=True, slots=True)
class Workers:
    """Who builds and measures: the workers of a farm, or this machine if the address is ""."""

    address: str
    security: FarmSecurity

    def opened(self) -> AbstractContextManager[Farm | None]:
        """The farm, open while the block runs; None for this machine."""
        return opened_farm(self.address or None, self.security)

    def check(self, target: Target) -> None:
        """If this machine measures, refuse a target that it cannot measure."""
        if not self.address:
            check_measures_here(target)

    def warn_if_unfit(self, target: Target, threads: int) -> None:
        """If this machine measures, warn if it is not fit for measurements."""
        if not self.address:
            check_before_measuring(target, threads)

    def callbacks(self) -> tuple[Callback, ...]:
        """The callbacks of a session that watch this machine, if this machine measures."""
        return () if self.address else (LoadCallback(),)


def workers_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --workers, --keys and --insecure; the command gets `workers`, of type `Workers`."""

    @security_options
    @click.option(
        "--workers",
        "address",
        default="",
        metavar="ADDRESS",
        help="Build and measure on a farm: tcp://HOST:PORT of its scheduler, or ssh://HOST,...",
    )
    @wraps(command)
    def with_workers(*args: Any, address: str, security: FarmSecurity, **kwargs: Any) -> Any:
        return command(*args, workers=Workers(address, security), **kwargs)

    return with_workers


def farm_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --processes, --workers, --keys and --insecure; the command gets `open_farm`."""

    @click.option(
        "--processes",
        default=2,
        show_default=True,
        type=click.IntRange(1),
        help="Processes of this machine that do the work.",
    )
    @click.option(
        "--workers",
        "address",
        metavar="ADDRESS",
        help="The scheduler of a farm whose workers do the work, tcp://HOST:PORT.",
    )
    @security_options
    @wraps(command)
    def with_workers(
        *args: Any, processes: int, address: str | None, security: FarmSecurity, **kwargs: Any
    ) -> Any:
        def open_farm() -> Farm:
            return LocalFarm(processes) if address is None else connect(address, security)

        return command(*args, open_farm=open_farm, **kwargs)

    return with_workers


def security_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --keys and --insecure; the command gets `security`."""

    @click.option(
        "--keys",
        type=click.Path(path_type=Path),
        metavar="FOLDER",
        help="The keys of the farm, made by `tensorwright farm keys`.",
    )
    @click.option(
        "--insecure", is_flag=True, help="Go on without keys even if the network can listen."
    )
    @wraps(command)
    def with_security(*args: Any, keys: Path | None, insecure: bool, **kwargs: Any) -> Any:
        return command(*args, security=FarmSecurity(keys, insecure), **kwargs)

    return with_security
