"""`tensorwright worker`: a worker of a farm, which builds and measures for clients."""

from __future__ import annotations

import platform
from contextlib import ExitStack

import click

from tensorwright import farm
from tensorwright.base import UsageError, available_cores
from tensorwright.cli.arguments.machine import security_options
from tensorwright.compile_options import CompileOptions

_AUTO, _NONE = "auto", "none"


@click.command()
@click.argument("address", metavar="ADDRESS", required=False)
@click.option(
    "--stdio",
    is_flag=True,
    help="Talk by standard input and output, as a client does that starts a worker over ssh.",
)
@click.option(
    "--device",
    "device_name",
    default=_AUTO,
    show_default=True,
    metavar="TARGET|none",
    help="What it measures on: native, cuda, opencl; none to build only. auto: the processor, "
    "unless another worker of this machine measures on it.",
)
@click.option(
    "--slots", type=click.IntRange(min=1), help="Units done at once; the cores by default."
)
@click.option("--name", default="", help="Unique in the farm; host and process by default.")
@security_options
def command(
    address: str | None,
    stdio: bool,
    device_name: str,
    slots: int | None,
    name: str,
    security: farm.FarmSecurity,
) -> None:
    """Build and measure for others, until it is ended: a worker of a farm.

    ADDRESS is that of the scheduler, tcp://HOST:PORT or tls://HOST:PORT. The worker waits for the
    scheduler, at the start and whenever the scheduler went away.

    Example: tensorwright worker tcp://127.0.0.1:8786
    """
    if (address is None) != stdio:
        raise UsageError(
            stage="cli",
            where="ADDRESS, --stdio",
            reason="a worker needs one of them",
            remedy="give the address of a scheduler",
        )
    with ExitStack() as stack:
        device = None
        if device_name != _NONE:
            named = "native" if device_name == _AUTO else device_name
            target = CompileOptions(target=named).machine
            is_free = stack.enter_context(farm.own_device(target, must=device_name != _AUTO))
            device = farm.device_for(target) if is_free else None
        if address is None:
            farm.serve_stdio(name or platform.node(), slots or available_cores(), device)
            return
        text = f"measures on {device.kind}" if device else "builds only"
        click.echo(f"{text}, {slots or available_cores()} units at once; waits for {address}")
        farm.dask_part("worker").work(
            address,
            slots or available_cores(),
            device,
            security,
            name=name,
            tell=click.echo,
        )
