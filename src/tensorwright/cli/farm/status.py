"""`tensorwright farm status`: the workers of a farm and their devices, as they are now."""

from __future__ import annotations

import json
from dataclasses import asdict

import click
from rich.console import Console
from rich.table import Table

from tensorwright.cli.arguments.farm import security_options
from tensorwright.farm import FarmSecurity, FarmWorker, connect


@click.command("status")
@click.argument("address", metavar="ADDRESS", default="tcp://127.0.0.1:8786")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@security_options
def status_command(address: str, as_json: bool, security: FarmSecurity) -> None:
    """List the workers of a farm: device, clock, temperature, load, last seen, queue.

    Example: tensorwright farm status tcp://127.0.0.1:8786
    """
    with connect(address, security) as farm:
        workers = farm.workers()
    if as_json:
        click.echo(json.dumps([asdict(worker) for worker in workers], indent=1))
        return
    table = Table(box=None, pad_edge=False)
    for title in ("worker", "host", "slots", "device", "MHz", "°C", "load", "seen", "queue", ""):
        table.add_column(title)
    for worker in workers:
        table.add_row(*_cells(worker))
    Console(soft_wrap=True).print(table)


def _cells(worker: FarmWorker) -> tuple[str, ...]:
    device = worker.device
    own = ("builds only", "", "", "", "")
    if device is not None:
        own = (
            device.kind,
            f"{device.clock_mhz:.0f}" if device.clock_mhz else "-",
            f"{device.celsius:.0f}" if device.celsius else "-",
            f"{device.load:.1f}",
            f"set aside: {device.set_aside}" if device.set_aside else "",
        )
    kind, clock, celsius, load, aside = own
    seen = f"{worker.seen_s:.1f} s ago"
    queue = str(worker.queue)
    slots = str(worker.slots)
    return worker.name, worker.host, slots, kind, clock, celsius, load, seen, queue, aside
