"""A worker of a Dask cluster that does units; it connects again after the scheduler went away."""

from __future__ import annotations

import asyncio
import json
import os
import platform
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict
from urllib.parse import urlsplit

from distributed import Worker

from tensorwright.base import MachineError
from tensorwright.farm.dask.guard import guarded, refuse_handlers
from tensorwright.farm.dask.settings import apply_settings, dask_security
from tensorwright.farm.device_state import name_worker, now
from tensorwright.farm.farm import Device
from tensorwright.farm.messages import farm_version
from tensorwright.farm.security import NO_SECURITY, FarmSecurity, loopback_of
from tensorwright.farm.serving import Server

RESOURCE = "device-"
_RETRY_S = 1.0


class FarmDaskWorker(Worker):  # type: ignore[misc]
    """A Dask worker with the `Server` that does its units."""

    farm_server: Server


def work(
    address: str,
    slots: int,
    device: Device | None = None,
    security: FarmSecurity = NO_SECURITY,
    name: str = "",
    tell: Callable[[str], None] = print,
    waits: bool = True,
) -> None:
    """Do units until the process is ended.

    slots    units that it does at once        device   what it measures on; None if it only builds
    tell     gets a line when it is connected  waits    whether it waits for a scheduler
    Raises:  MachineError if there is no scheduler and it does not wait; the UsageError of
             `dask_security`.
    """
    apply_settings()
    server = Server(security.key)
    with guarded(), closing(server):
        asyncio.run(_work(address, slots, device, security, name, tell, waits, server))


async def _work(
    address: str,
    slots: int,
    device: Device | None,
    security: FarmSecurity,
    name: str,
    tell: Callable[[str], None],
    waits: bool,
    server: Server,
) -> None:
    host = loopback_of(urlsplit(address).hostname or "") or None
    resources = {f"{RESOURCE}{device.kind}": 1} if device is not None else {}
    name = name or f"{platform.node()}-{os.getpid()}"
    name_worker(name)
    while True:
        worker = FarmDaskWorker(
            address,
            nthreads=slots,
            executor=ThreadPoolExecutor(slots, "unit"),  # closed by the worker
            name=name,
            resources=resources,
            memory_limit=0,
            security=dask_security(address, security),
            dashboard=False,
            dashboard_address="127.0.0.1:0",
            host=host,
            death_timeout=5,
            metrics={"tensorwright": lambda _: _metrics(device)},
        )
        worker.farm_server = server
        refuse_handlers(worker)
        try:
            await worker
        except (TimeoutError, OSError, RuntimeError) as error:
            if not waits:
                raise no_scheduler(address, error) from error
            await asyncio.sleep(_RETRY_S)
            continue
        waits = True
        tell(f"worker {name} at {address}")
        await worker.finished()
        tell("the scheduler went away; waiting for it")
        await asyncio.sleep(_RETRY_S)


def no_scheduler(address: str, error: BaseException | None = None) -> MachineError:
    """The error that nobody answers at an address."""
    reason = "no scheduler answers there" + (f" ({error})" if error and str(error) else "")
    return MachineError(
        stage="farm",
        where=f"address {address}",
        reason=reason,
        remedy="start one with `tensorwright farm scheduler`, with the same folder of keys",
    )


def _metrics(device: Device | None) -> dict[str, object]:
    state = None if device is None else json.dumps(asdict(now(device)))
    return {"version": farm_version(), "device": state}
