"""What travels between a pool and its workers: jobs there, outcomes back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Job:
    """A call: a function that the child can import by name, and plain arguments."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """The function returned."""

    value: Any


@dataclass(frozen=True, slots=True)
class Raised:
    """The function raised; `is_memory` where it found no memory."""

    kind: str
    text: str
    is_memory: bool = False

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


@dataclass(frozen=True, slots=True)
class Died:
    """The process ended meanwhile. `was_killed`: by SIGKILL, as the kernel does without memory."""

    cause: str
    was_killed: bool


@dataclass(frozen=True, slots=True)
class TimedOut:
    """No answer within the limit; the process was ended."""

    limit_s: float


@dataclass(frozen=True, slots=True)
class Stopped:
    """Not done: the caller asked to stop before."""


Outcome: TypeAlias = Done | Raised | Died | TimedOut | Stopped
