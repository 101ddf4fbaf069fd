"""A worker process that is started before its work is known.

A process needs half a second to import the compiler; it does so while the caller does the same.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

from tensorwright.processes.child import Child
from tensorwright.processes.job import Job

_spares: list[Child] = []


@contextlib.contextmanager
def spare_worker(module: str, function: str, *arguments: Any) -> Iterator[None]:
    """Start a process that calls a function of a module; inside the block `take_spare` returns it.

    It ends with the block unless it was taken.  If it cannot be started, there is no spare process.
    """
    try:
        child = Child(Job(_call, (module, function, *arguments)))
    except OSError:
        yield
        return
    _spares.append(child)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # it was taken
            _spares.remove(child)
            child.kill()


def has_spare() -> bool:
    """Whether `take_spare` would return a process."""
    return bool(_spares)


def take_spare() -> Child | None:
    """Take the spare process, which the caller then ends; None if there is none."""
    try:
        return _spares.pop()
    except IndexError:
        return None


def occupy_spare(job: Job, limit_s: float) -> None:
    """Give the spare process, if there is one, a job until it is taken."""
    child = take_spare()
    if child is not None:
        child.send(job, limit_s)
        _spares.append(child)


def _call(module: str, function: str, *arguments: Any) -> bool:
    """Call a function by name, in the worker."""
    getattr(importlib.import_module(module), function)(*arguments)
    return True
