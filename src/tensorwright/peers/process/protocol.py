"""The protocol of competitors, their descriptions and their failures.

The process of a competitor does the jobs of `jobs.py`, which `process.py` sends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import numpy as np

from tensorwright.base import MachineError

Arrays = Mapping[str, np.ndarray[Any, np.dtype[Any]]]
"""Arrays by name, in the model's order."""


@dataclass(frozen=True, slots=True)
class PeerInfo:
    """A competitor's description of itself: its version, and how it runs the model.

    vector_bytes  of the widest vectors that its kernels use; 0 if it cannot tell
    """

    version: str
    detail: str
    vector_bytes: int = 0


class Peer(Protocol):
    """One runtime with its fastest settings, inside its worker process.

    One thread calls the methods: load once, then any number of times bind, and after it run, call
    and park. An exception of any method is reported to the benchmark; the process goes on.
    """

    def load(self, path: str, threads: int, options: Mapping[str, Any]) -> PeerInfo:
        """Read the model, and prepare the fastest execution of this runtime."""

    def bind(self, inputs: Arrays) -> None:
        """Take the inputs of the next calls, converted and placed so that a call copies none."""

    def run(self) -> Arrays:
        """Compute the outputs of the bound inputs."""

    def call(self) -> object:
        """Do only the work of `run`; this method is timed."""

    def caller(self) -> Callable[[], object]:
        """A further `call` on the bound inputs, which may run in a thread beside others.

        Raises:  ValueError if the runtime is not compared under several callers.
        """
        raise ValueError("it is not compared under several callers")

    def park(self) -> None:
        """Release the cores at the end of a turn; nothing by default, as the process is stopped."""


def not_bound() -> Any:
    """The `call` of a peer before `bind`.

    Raises:  ValueError always.
    """
    raise ValueError("no inputs are bound")


class FailureKind(StrEnum):
    """How a competitor failed."""

    REFUSED = "refused"
    CRASHED = "crashed"
    HUNG = "hung"


class PeerFailed(MachineError):
    """A competitor refused a command, crashed or hung, as `kind` says. It is a result."""

    field_names = (*MachineError.field_names, "kind")

    def __init__(
        self, *, stage: str = "peers", where: str, reason: str, remedy: str = "", kind: str
    ) -> None:
        super().__init__(stage=stage, where=where, reason=reason, remedy=remedy)
        self.kind = kind


def plain_arrays(arrays: Arrays) -> Arrays:
    """The arrays in a form that can be sent.

    Raises:  ValueError for an array of objects.
    """
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise ValueError(f"array {name} holds Python objects")
    return dict(arrays)
