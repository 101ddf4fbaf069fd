"""The scheduler of a farm: Dask's scheduler with the settings of a farm."""

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
from tensorwright.farm.security import NO_SECURITY, FarmSecurity, in_brackets, loopback_of

SILENT_S = 60.0
"""Workers report every second, also while they measure, because their children measure."""


def schedule(
    address: str,
    security: FarmSecurity = NO_SECURITY,
    page: str = "127.0.0.1:8787",
    silent_s: float = SILENT_S,
    tell: Callable[[str], None] = print,
) -> None:
    """Hand out units until the process is ended.

    address   where it listens, tcp://127.0.0.1:8786     page   HOST:PORT of Dask's own page
    silent_s  seconds without a report after which a worker is gone, and others get its units
    tell      gets the address, then the address of the page
    Raises:  MachineError if the address is in use; the UsageError of `dask_security`.
    """
    apply_settings()
    _allow_connections()
    with guarded():
        asyncio.run(_schedule(address, security, page, silent_s, tell))


def _allow_connections() -> None:
    """Raise the limit of open files as far as allowed: Dask uses half of them for workers."""
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
    protection = dask_security(address, security)
    name = parts.hostname or ""
    host = loopback_of(name) or in_brackets(name)
    page_host = page.rpartition(":")[0] or "127.0.0.1"  # Dask would take all for no host
    try:
        scheduler = await Scheduler(
            host=f"{parts.scheme}://{host}",
            port=parts.port or 0,
            security=protection,
            dashboard_address=f"{page_host}:{page.rpartition(':')[2]}",
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
    tell(f"page at http://{page_host}:{scheduler.http_server.port}/info/main/workers.html")
    await scheduler.finished()
