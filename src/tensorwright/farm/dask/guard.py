"""What Dask may unpickle in a process of a farm: a call of `run_unit` with bytes, and no more.

Dask pickles functions, arguments and exceptions, and reading a pickle can run any code.  This
module replaces the reader of pickles by one that accepts a few names.  So anyone who reaches the
scheduler can run units, which are named functions with plain arguments, and nothing else.
"""

from __future__ import annotations

import io
import logging
import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import distributed.client
import distributed.scheduler
from distributed import protocol

ALLOWED = frozenset(
    {
        ("builtins", "bytes"),
        ("dask._expr", "Expr._reconstruct"),
        ("dask._expr", "LLGExpr"),
        ("dask._task_spec", "Task"),
        ("dask._task_spec", "TaskRef"),
        ("distributed.shuffle._worker_plugin", "ShuffleWorkerPlugin"),
        ("tensorwright.farm.dask.running", "run_unit"),
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
