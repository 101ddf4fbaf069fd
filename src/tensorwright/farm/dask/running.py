"""The one function that Dask calls on workers: bytes in, bytes out."""

from __future__ import annotations

from distributed import get_worker

from tensorwright.farm.serving import Server


def run_unit(request: bytes) -> bytes:
    """Let this worker's `Server` answer the request; it stops when Dask has given the unit up."""
    worker = get_worker()
    server: Server = worker.farm_server
    key = worker.get_current_task()

    def is_given_up() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state not in ("executing", "long-running")

    return server.answer(request, is_given_up)
