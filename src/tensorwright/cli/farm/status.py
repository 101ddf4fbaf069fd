"""`tensorwright farm status`: list the workers of a farm and their devices."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from tensorwright.cli.arguments.farm import security_options
from tensorwright.cli.printing.tables import print_table
from tensorwright.cli.printing.wrapping import echo_prose
from tensorwright.farm import FarmSecurity, FarmWorker, connect

_COLUMNS = ("worker", "host", "slots", "device", "MHz", "°C", "load", "seen", "queue", "state")


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
