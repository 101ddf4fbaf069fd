"""A worker of a Dask cluster that does units; it connects again after the scheduler went away.

The settings of Dask for a farm, and the addresses to which it may connect.

What Dask may unpickle in a process of a farm: a call of `run_unit` with bytes, and no more.

Dask pickles functions, arguments and exceptions, and reading a pickle can run any code.  This
module replaces the reader of pickles by one that accepts a few names.  So anyone who reaches the
scheduler can run units, which are named functions with plain arguments, and nothing else.

The one function that Dask calls on workers: bytes in, bytes out.

The scheduler of a farm: Dask's scheduler with the settings of a farm.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import pickle
import platform
import resource
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import dask
import distributed.client
import distributed.scheduler
from distributed import Scheduler, Security, Worker, get_worker, protocol

from tensorwright.base import MachineError, UsageError
from tensorwright.farm.connecting import NO_SECURITY, FarmSecurity, in_brackets, loopback_of
from tensorwright.farm.farm import Device
from tensorwright.farm.serving import Server, farm_version, name_worker, now

SETTINGS = {
    "distributed.scheduler.work-stealing": False,  # with resources it moved units to wrong workers
    "distributed.scheduler.allowed-failures": 1,
    "distributed.scheduler.worker-saturation": 1.0,
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.disk": False,
    "distributed.admin.system-monitor.interval": "5s",  # it wakes a machine that measures
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.low-level-log-length": 100,
    "distributed.comm.timeouts.connect": "10s",
    "distributed.comm.timeouts.tcp": "30s",
}


def apply_settings() -> None:
    """Apply the settings to this process, which must be a process of tensorwright alone."""
    dask.config.set(SETTINGS)


def dask_security(address: str, security: FarmSecurity) -> Security | None:
    """The security of a connection to an address, or of a scheduler that listens there.

    Raises:  UsageError for a wrong scheme, for damaged keys, and without keys for any address but
             loopback.
    """

    def refused(reason: str, remedy: str) -> UsageError:
        return UsageError(stage="farm", where=f"address {address}", reason=reason, remedy=remedy)

    parts = urlsplit(address)
    if parts.scheme not in ("tcp", "tls") or parts.hostname is None:
        raise refused(
            "it is not of the form tcp://HOST:PORT or tls://HOST:PORT",
            "copy it from the first line that `tensorwright farm scheduler` prints",
        )
    if security.folder is None:
        if parts.scheme == "tls":
            raise refused(
                "TLS needs keys, and none are given",
                "give the folder of `tensorwright farm keys` with --keys",
            )
        if not (security.is_insecure or loopback_of(parts.hostname)):
            raise refused(
                "without keys, anyone in that network could run programs on the farm",
                "make keys with `tensorwright farm keys FOLDER` and give --keys FOLDER; "
                "--insecure goes on without keys",
            )
        return None
    if parts.scheme != "tls":
        raise refused("keys are given, but tcp:// does not encrypt", f"tls://{parts.netloc}")
    made = Security(require_encryption=True, **security.files())
    try:
        made.get_connection_args("client")
    except (OSError, ValueError) as error:
        reason = f"its keys are damaged, or belong to several farms ({error})"
        raise security.fault(f"folder {security.folder}", reason) from error
    return made


ALLOWED = frozenset(
    {
        ("builtins", "bytes"),
        ("dask._expr", "Expr._reconstruct"),
        ("dask._expr", "LLGExpr"),
        ("dask._task_spec", "Task"),
        ("dask._task_spec", "TaskRef"),
        ("distributed.shuffle._worker_plugin", "ShuffleWorkerPlugin"),
        ("tensorwright.farm.dask.worker", "run_unit"),
    }
)
"""The names that a pickle of a farm may have; Dask's own are classes that only store values."""

REFUSED_HANDLERS = (
    "run",
    "run_coroutine",
    "run_function",
    "plugin-add",
    "register_scheduler_plugin",
    "register_worker_plugin",
    "register_nanny_plugin",
    "upload_file",
    "actor_execute",
    "actor_attribute",
)
"""The requests by which Dask's servers run pickled functions, or read and write files."""


class RefusedPickle(pickle.UnpicklingError, TypeError):
    """A pickle with a name that the list does not have.

    It is a TypeError, because Dask's client goes on after one when it reads the error of a task.
    """


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise RefusedPickle(f"a farm reads no pickle of {module}.{name}")
        return super().find_class(module, name)


def read_pickle(data: bytes, *, buffers: Iterable[Any] = ()) -> Any:
    """Read a pickle, all of whose names are in the list.  Raises: RefusedPickle."""
    return _Reader(io.BytesIO(data), buffers=buffers or None).load()


_OPEN: list[None] = []
"""One entry for each open block of `guarded`: several farms may be open in a process."""
_LOGGERS = tuple(map(logging.getLogger, ("distributed", "distributed.client")))
_LEVELS: dict[logging.Logger, int] = {}
"""The levels of Dask's loggers outside of all blocks."""


@contextmanager
def guarded() -> Iterator[None]:
    """Let Dask read only pickles of a farm, in this process, inside the block.

    It logs nothing there, either: it logs a traceback for each task that ends with its scheduler.
    That a scheduler went away is told by those who miss it.
    """
    if not _OPEN:
        _LEVELS.update((each, each.level) for each in _LOGGERS)
        for each in _LOGGERS:
            each.setLevel(logging.CRITICAL)
        _install(read_pickle, SimpleNamespace(loads=read_pickle, dumps=pickle.dumps))
    _OPEN.append(None)
    try:
        yield
    finally:
        _OPEN.pop()
        if not _OPEN:
            _install(_DASKS_OWN, pickle)
            for each, level in _LEVELS.items():
                each.setLevel(level)


_DASKS_OWN = protocol.pickle.loads


def _install(read: Callable[..., Any], module: Any) -> None:
    """Let Dask read pickles by a function; `module` replaces `pickle` in its scheduler."""
    protocol.pickle.loads = read
    distributed.scheduler.loads = read
    distributed.client.loads = read
    distributed.scheduler.pickle = module


def refuse_handlers(server: Any) -> None:
    """Remove from a Dask server the requests that run pickled functions or store files."""
    for name in REFUSED_HANDLERS:
        server.handlers.pop(name, None)


def run_unit(request: bytes) -> bytes:
    """Let this worker's `Server` answer the request; it stops when Dask has given the unit up."""
    worker = get_worker()
    server: Server = worker.farm_server
    key = worker.get_current_task()

    def is_given_up() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state not in ("executing", "long-running")

    return server.answer(request, is_given_up)


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
