"""The options of commands whose units of work any process can do."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from tensorwright.cli.arguments.farm import security_options
from tensorwright.farm import Farm, FarmSecurity, LocalFarm, connect

OpenFarm = Callable[[], Farm]


def worker_options(command: Callable[..., Any]) -> Callable[..., Any]:
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
