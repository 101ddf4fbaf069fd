"""What a worker does with a request: check it, do its unit in a child process, and answer.

The answer holds the outcome of the unit, whatever it is.  The time limit of a unit begins when the
unit begins, not while it waits in a queue; tvm#13963 shows why.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable

from tensorwright.base import TensorwrightError
from tensorwright.farm.functions import NamedFunction, call_named, function_named
from tensorwright.farm.messages import (
    WrongKeyError,
    farm_version,
    other_version,
    pack_answer,
    unpack_request,
)
from tensorwright.farm.unit import FarmOutcome, Unit
from tensorwright.processes import Done, Job, Raised, Stopped, WorkerPool, never


class Server:
    """Answers requests; several threads may call it, and each gets a separate child.

    key   the shared key; b"" if there is none
    """

    def __init__(self, key: bytes = b"") -> None:
        self._key = key
        self._of_thread = threading.local()
        self._pools: list[WorkerPool] = []

    def answer(self, request: bytes, should_stop: Callable[[], bool] = never) -> bytes:
        """Do a request and pack its outcome; `should_stop` says that the client gave it up."""
        return pack_answer(self._outcome(request, should_stop), request, self._key)

    def close(self) -> None:
        """End the children."""
        for pool in self._pools:
            pool.close()

    def _outcome(self, request: bytes, should_stop: Callable[[], bool]) -> FarmOutcome:
        try:
            wanted = unpack_request(request, self._key)
            if wanted.version != farm_version():
                raise other_version(wanted.version)
            function = function_named(wanted.unit.function)
        except (WrongKeyError, TensorwrightError) as error:
            return _raised(error)
        except ValueError as error:
            return Raised("ValueError", f"the request cannot be read: {error}")
        if function.is_isolated:
            return self._in_child(wanted.unit, should_stop)
        return _here(function, wanted.unit, should_stop)

    def _in_child(self, unit: Unit, should_stop: Callable[[], bool]) -> FarmOutcome:
        pool = getattr(self._of_thread, "pool", None)
        if pool is None:
            pool = self._of_thread.pool = WorkerPool(1)
            self._pools.append(pool)
        job = Job(call_named, (unit.function, unit.payload))
        (outcome,) = pool.run([job], unit.limit_s, should_stop)
        return outcome


def _here(function: NamedFunction, unit: Unit, should_stop: Callable[[], bool]) -> FarmOutcome:
    try:
        result = function.load()(unit.payload, should_stop)
        return Stopped() if result is None else Done(result)
    except TensorwrightError as error:
        return _raised(error)
    except Exception as error:  # noqa: BLE001 - the client gets it and decides
        return Raised(
            type(error).__name__,
            str(error),
            traceback.format_exc(limit=-3),
            isinstance(error, MemoryError),
        )


def _raised(error: TensorwrightError) -> Raised:
    return Raised(type(error).__name__, str(error), error=error)
