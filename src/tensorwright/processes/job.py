"""The unit of work of a worker process, and how it may end.

A job is a function that another process can import by name, and plain arguments. Its outcome is a
value, however it ended; `str` of a failure is the reason as a message.

Turns of measuring: only one process of a user measures at a time.

End a stopped process when the one that stopped it dies.

A stopped process does not notice that its pipes have closed, and whether the system wakes it
depends on its new parent. So a shell waits at a pipe that only the benchmark holds open. When the
benchmark has ended in any way, the shell ends the competitor.
"""

from __future__ import annotations

import math
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from tensorwright.base import OutputError, TensorwrightError, hold_home_lock


@dataclass(frozen=True, slots=True)
class Job:
    """A call: a function that the worker can import by name, and plain arguments.

    limit_s   most seconds that it may take; its pool may allow less
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    limit_s: float = math.inf


@dataclass(frozen=True, slots=True)
class Done:
    """The function returned."""

    value: Any


@dataclass(frozen=True, slots=True)
class Raised:
    """The function raised.

    kind, text  the exception's class and message    is_memory  whether memory was missing
    trace       of the exception                     error      it, if it is a TensorwrightError
    """

    kind: str
    text: str
    trace: str = ""
    is_memory: bool = False
    error: TensorwrightError | None = None

    def __str__(self) -> str:
        return "\n".join(filter(None, (f"{self.kind}: {self.text}", self.trace)))


@dataclass(frozen=True, slots=True)
class Died:
    """The process ended; `was_killed` if by SIGKILL, which the kernel sends if memory is short."""

    cause: str
    was_killed: bool

    def __str__(self) -> str:
        return self.cause


@dataclass(frozen=True, slots=True)
class TimedOut:
    """No answer came within the limit, and the process was ended."""

    limit_s: float

    def __str__(self) -> str:
        return f"no answer within {self.limit_s:g} seconds"


@dataclass(frozen=True, slots=True)
class Stopped:
    """It was not begun, because the caller asked to stop."""


Outcome: TypeAlias = Done | Raised | Died | TimedOut | Stopped


def never() -> bool:
    """The `should_stop` of a caller that never stops."""
    return False


@contextmanager
def hold_turn(should_stop: Callable[[], bool] = never) -> Iterator[bool]:
    """Be the only tuner or benchmark of this user that measures, inside the block.

    If the folder of the knob `home` cannot be written, there is no lock.  The block gets False, and
    does not hold the turn, if `should_stop` became true first.
    """
    with ExitStack() as stack:
        is_held = True
        with suppress(OutputError):
            is_held = stack.enter_context(hold_home_lock("turn.lock", should_stop))
        yield is_held


_SCRIPT = 'read _; kill -s KILL -- "-$1" 2>/dev/null'


class Guard:
    """Watches the process group of `pid`, from its creation until `close`."""

    def __init__(self, pid: int) -> None:
        self._shell: subprocess.Popen[bytes] | None = None
        if hasattr(signal, "SIGSTOP"):  # a process that cannot be stopped needs no guard
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT, "sh", str(pid)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                process_group=0,
            )

    def close(self) -> None:
        """Stop watching; call it before the process is waited for. Closing twice does no harm."""
        shell, self._shell = self._shell, None
        if shell is not None:
            shell.kill()
            shell.wait()
            if shell.stdin is not None:
                shell.stdin.close()
