"""The unit of work of a worker process, and how it may end.

A job is a function that another process can import by name, and plain arguments. Its outcome is a
value, however it ended; `str` of a failure is the reason as a message.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from tensorwright.base import TensorwrightError


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
