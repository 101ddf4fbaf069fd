"""The child's end of the pool: does jobs, one after another, until its parent lets go.

A job is a function, by name, and its arguments; the answer is its value or the error it raised.
Started by `pool.py` as `python -m tensorwright.processes.worker FD`, where FD is the pipe of jobs.
The standard input carries nothing: it ends when the parent does, however that comes about, and the
child ends itself then, even out of an endless loop in machine code.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from tensorwright.base import TensorwrightError
from tensorwright.processes.outcomes import Done, Job, Raised

READY = b"ready"


def main(descriptor: int) -> None:
    """Serve on the pipe. What jobs print goes where the parent said the error stream goes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    threading.Thread(target=_end_with_parent, daemon=True).start()
    connection: Connection[Any, Any] = Connection(descriptor)
    connection.send_bytes(READY)
    while True:
        try:
            job: Job = connection.recv()
        except EOFError:
            return
        connection.send(_do(job.function, job.arguments))


def _do(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Done | Raised:
    try:
        return Done(function(*arguments))
    except MemoryError as error:
        return Raised("MemoryError", str(error) or "no memory left", is_memory=True)
    except TensorwrightError as error:
        return Raised(type(error).__name__, str(error))
    except Exception as error:  # noqa: BLE001 - told to the parent, which decides
        place = traceback.format_exc(limit=-3)
        return Raised(type(error).__name__, f"{error}\n{place}")


def _end_with_parent() -> None:
    while os.read(0, 1024):
        pass
    os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]))
