"""The process that does jobs, one after another, until its parent closes the pipe.

`pool.py` starts it as `python -m tensorwright.processes.worker FD`, where FD is the pipe of jobs.
The standard input carries no data: it ends when the parent ends in any way.  The process then ends
itself, even in an endless loop of machine code.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from multiprocessing.connection import Connection
from typing import Any

from tensorwright.base import TensorwrightError
from tensorwright.processes.job import Done, Job, Raised


def main(descriptor: int) -> None:
    """Do the jobs of the pipe. Jobs print to the error stream, which the parent has chosen."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    threading.Thread(target=_end_with_parent, daemon=True).start()
    connection: Connection[Any, Any] = Connection(descriptor)
    while True:
        try:
            job: Job = connection.recv()
        except EOFError:
            return
        connection.send(_do(job))


def _do(job: Job) -> Done | Raised:
    try:
        return Done(job.function(*job.arguments))
    except MemoryError as error:
        return Raised("MemoryError", str(error) or "no memory left", is_memory=True)
    except TensorwrightError as error:
        return Raised(type(error).__name__, str(error), error=error)
    except Exception as error:  # noqa: BLE001 - the parent gets it and decides
        return Raised(type(error).__name__, str(error), traceback.format_exc(limit=-3))


def _end_with_parent() -> None:
    while os.read(0, 1024):
        pass
    os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]))
