"""The scheduler of a farm: Dask's, as a farm needs it set."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable
from urllib.parse import urlsplit

import dask
from distributed import Scheduler

from tensorwright.base import MachineError
from tensorwright.farm.dask.guard import guarded, refuse_handlers
from tensorwright.farm.dask.settings import apply_settings, dask_security
from tensorwright.farm.security import NO_SECURITY, FarmSecurity

SILENT_S = 60.0
"""Workers say that they are there every second, also while they measure: children do that."""


def schedule(
    address: str,
    security: FarmSecurity = NO_SECURITY,
    page: str = "127.0.0.1:8787",
    silent_s: float = SILENT_S,
    tell: Callable[[str], None] = print,
) -> None:
    """Hand out units until the process is ended.

    address   where it listens, tcp://127.0.0.1:8786     page   where Dask's own page is, HOST:PORT
    silent_s  a worker that says nothing for so long is gone: its units go to others
    tell      gets its address, then that of the page
    Raises:  MachineError if somebody listens there; UsageError as `dask_security`.
    """
    apply_settings()
    _allow_connections()
    with guarded():
        asyncio.run(_schedule(address, security, page, silent_s, tell))


def _allow_connections() -> None:
    """Let this process have as many open files as it may: Dask uses half of them for workers."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _schedule(
    address: str,
    security: FarmSecurity,
    page: str,
    silent_s: float,
    tell: Callable[[str], None],
) -> None:
    dask.config.set({"distributed.scheduler.worker-ttl": silent_s})
    parts = urlsplit(address)
    try:
        scheduler = await Scheduler(
            host=f"{parts.scheme}://{parts.hostname}",
            port=parts.port or 0,
            security=dask_security(address, security),
            dashboard_address=page,
        )
    except OSError as error:
        raise MachineError(
            stage="farm",
            where=f"address {address}",
            reason=f"a scheduler cannot listen there: {error.strerror or error}",
            remedy="give another port",
        ) from error
    refuse_handlers(scheduler)
    tell(f"scheduler at {scheduler.address}")
    host = page.rpartition(":")[0] or "127.0.0.1"
    tell(f"page at http://{host}:{scheduler.http_server.port}/info/main/workers.html")
    await scheduler.finished()
