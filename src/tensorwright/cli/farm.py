"""`tensorwright farm` and `tensorwright worker`: the machines that build and measure for others."""

from __future__ import annotations

import json
import platform
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import click

from tensorwright.base import UsageError, available_cores
from tensorwright.cli.arguments.machine import security_options
from tensorwright.cli.group import echo_prose
from tensorwright.cli.printing import print_table
from tensorwright.compile_options import CompileOptions
from tensorwright.farm import (
    FarmSecurity,
    FarmWorker,
    connect,
    dask_part,
    device_for,
    make_keys,
    own_device,
    serve_stdio,
)


@click.command("keys")
@click.argument("folder", type=click.Path(path_type=Path))
def keys_command(folder: Path) -> None:
    """Make certificates for TLS and a shared key, in a new folder.

    Copy the folder to all machines of the farm, and give it to scheduler, workers and clients with
    --keys. Who has it can have work done on the farm.

    Example: tensorwright farm keys keys
    """
    for path in make_keys(folder):
        click.echo(path)


@click.command("scheduler")
@click.argument("address", metavar="ADDRESS", default="tcp://127.0.0.1:8786")
@click.option(
    "--page",
    default="127.0.0.1:8787",
    show_default=True,
    metavar="HOST:PORT",
    help="Where Dask's own page is.",
)
@click.option(
    "--silent",
    "silent_s",
    type=click.FloatRange(min=1),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="A worker that says nothing for so long is gone.",
)
@security_options
def scheduler_command(address: str, page: str, silent_s: float, security: FarmSecurity) -> None:
    """Hand out units of work to the workers of a farm, until it is ended.

    ADDRESS is where it listens: tcp://127.0.0.1:8786, or tls://HOST:PORT with --keys.

    Example: tensorwright farm scheduler tls://0.0.0.0:8786 --keys keys
    """
    dask_part("worker").schedule(address, security, page, silent_s, click.echo)


_COLUMNS = ("worker", "host", "slots", "device", "MHz", "°C", "load", "seen", "queue", "state")


@click.command("status")
@click.argument("address", metavar="ADDRESS", default="tcp://127.0.0.1:8786")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@security_options
def status_command(address: str, as_json: bool, security: FarmSecurity) -> None:
    """List the workers of a farm: device, clock, temperature, load, last seen, queue.

    Example: tensorwright farm status tcp://127.0.0.1:8786
    """
    with connect(address, security) as opened:
        workers = opened.workers()
    if as_json:
        click.echo(json.dumps([asdict(worker) for worker in workers], indent=1))
        return
    print_table(_COLUMNS, [_cells(worker) for worker in workers])
    for worker in workers:
        if worker.device is not None and worker.device.set_aside:
            echo_prose(f"{worker.name} is set aside: {worker.device.set_aside}")


def _cells(worker: FarmWorker) -> tuple[str, ...]:
    device = worker.device
    own = ("-", "-", "-", "-", "builds only")
    if device is not None:
        own = (
            device.kind,
            f"{device.clock_mhz:.0f}" if device.clock_mhz else "-",
            f"{device.celsius:.0f}" if device.celsius else "-",
            f"{device.load:.1f}",
            "set aside" if device.set_aside else "measures",
        )
    kind, clock, celsius, load, aside = own
    seen = f"{worker.seen_s:.1f} s ago"
    queue = str(worker.queue)
    slots = str(worker.slots)
    return worker.name, worker.host, slots, kind, clock, celsius, load, seen, queue, aside


@click.group()
def farm() -> None:
    """Use many machines: start a scheduler, make keys, see what the workers do.

    Example: tensorwright farm scheduler
    """


for _each in (scheduler_command, keys_command, status_command):
    farm.add_command(_each)


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
def worker(
    address: str | None,
    stdio: bool,
    device_name: str,
    slots: int | None,
    name: str,
    security: FarmSecurity,
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
            is_free = stack.enter_context(own_device(target, must=device_name != _AUTO))
            device = device_for(target) if is_free else None
        if address is None:
            serve_stdio(name or platform.node(), slots or available_cores(), device)
            return
        text = f"measures on {device.kind}" if device else "builds only"
        click.echo(f"{text}, {slots or available_cores()} units at once; waits for {address}")
        dask_part("worker").work(
            address,
            slots or available_cores(),
            device,
            security,
            name=name,
            tell=click.echo,
        )
