"""What Dask may unpickle in a process of a farm: a call of `run_unit` with bytes, and no more.

Dask pickles functions, arguments and exceptions, and a pickle can run anything where it is read.
Here the reader of pickles is replaced by one that knows a handful of names.  So whoever reaches the
scheduler can have units done, which are named functions with plain arguments, and nothing else.
"""

from __future__ import annotations

import io
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
        ("distributed.shuffle._worker_plugin", "ShuffleWorkerPlugin"),
        ("tensorwright.farm.dask.running", "run_unit"),
    }
)
"""The names that pickles of a farm have; Dask's own are classes that only keep what they get."""

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
"""What Dask's servers would do for anybody who connects, by pickled functions or by files."""


class RefusedPickle(pickle.UnpicklingError, TypeError):
    """A pickle with a name that is not of a farm.  Dask goes on after a TypeError where a client
    reads what was wrong with a task: it then knows that something was, which is all we ask.
    """


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise RefusedPickle(f"a farm reads no pickle of {module}.{name}")
        return super().find_class(module, name)


def read_pickle(data: bytes, *, buffers: Iterable[Any] = ()) -> Any:
    """Read a pickle that has names of the list only.  Raises: RefusedPickle."""
    return _Reader(io.BytesIO(data), buffers=buffers or None).load()


_OPEN: list[None] = []
"""One entry for each block of `guarded` that lasts: several farms may be open in a process."""


@contextmanager
def guarded() -> Iterator[None]:
    """Let Dask read pickles of a farm only, in this process, while the block lasts."""
    if not _OPEN:
        _install(read_pickle, SimpleNamespace(loads=read_pickle, dumps=pickle.dumps))
    _OPEN.append(None)
    try:
        yield
    finally:
        _OPEN.pop()
        if not _OPEN:
            _install(_DASKS_OWN, pickle)


_DASKS_OWN = protocol.pickle.loads


def _install(read: Callable[..., Any], module: Any) -> None:
    """Let Dask read pickles by a function; `module` is what its scheduler has for `pickle`."""
    protocol.pickle.loads = read
    distributed.scheduler.loads = read
    distributed.client.loads = read
    distributed.scheduler.pickle = module


def refuse_handlers(server: Any) -> None:
    """Take away from a Dask server what runs pickled functions or stores files."""
    for name in REFUSED_HANDLERS:
        server.handlers.pop(name, None)
