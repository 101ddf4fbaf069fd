"""The unit of work of a worker process, and how it may end.

A job is a function that another process can import by name, and plain arguments. All that befalls
it there is a value; `str` of a failure is its reason, for people.
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

    limit_s   the longest that it may take, where its pool does not allow less
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

    kind, text  the exception's class and message    is_memory  whether it found no memory
    trace       where it was raised                  error      the exception, if it is one of ours
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
    """The process ended meanwhile. `was_killed`: by SIGKILL, as the kernel does without memory."""

    cause: str
    was_killed: bool

    def __str__(self) -> str:
        return self.cause


@dataclass(frozen=True, slots=True)
class TimedOut:
    """No answer within the limit; the process was ended."""

    limit_s: float

    def __str__(self) -> str:
        return f"no answer within {self.limit_s:g} seconds"


@dataclass(frozen=True, slots=True)
class Stopped:
    """Not done: the caller asked to stop before."""


Outcome: TypeAlias = Done | Raised | Died | TimedOut | Stopped


def never() -> bool:
    """For a caller who never wants to stop."""
    return False
