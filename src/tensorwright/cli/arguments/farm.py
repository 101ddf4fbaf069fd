"""The options of commands that belong to a farm."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from tensorwright.farm import FarmSecurity


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
