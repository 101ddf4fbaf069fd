"""What a competitor must do, what it says of itself, and how it may fail.

Its process does the jobs of `jobs.py`, asked by `process.py`.
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
    """A competitor's own account: its version, and how it runs the model.

    vector_bytes  of the widest vectors that its kernels use; 0 where it cannot say
    """

    version: str
    detail: str
    vector_bytes: int = 0


class Peer(Protocol):
    """One runtime at its best, inside its worker process. Called from one thread, in this order:

    load once, then any number of: bind, and after it run, call and park. An exception of any
    method is reported to the benchmark; the process goes on.
    """

    def load(self, path: str, threads: int, options: Mapping[str, Any]) -> PeerInfo:
        """Read the model and make it as fast as this runtime can."""

    def bind(self, inputs: Arrays) -> None:
        """Take the inputs of the calls to come, converted and placed so that a call copies none."""

    def run(self) -> Arrays:
        """Compute the outputs of the bound inputs."""

    def call(self) -> object:
        """Do the work of `run` and nothing else: this is what is timed."""

    def caller(self) -> Callable[[], object]:
        """A further `call` on the bound inputs, which may run in a thread beside others.

        Raises:  ValueError where the runtime is not compared under several callers.
        """
        raise ValueError("it is not compared under several callers")

    def park(self) -> None:
        """The turn is over: let go of the cores. By default nothing: the process is stopped."""


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
    """A competitor refused a command, crashed or hung; `kind` says which. It is a result."""

    field_names = (*MachineError.field_names, "kind")

    def __init__(
        self, *, stage: str = "peers", where: str, reason: str, remedy: str = "", kind: str
    ) -> None:
        super().__init__(stage=stage, where=where, reason=reason, remedy=remedy)
        self.kind = kind


def plain_arrays(arrays: Arrays) -> Arrays:
    """The arrays as they can be sent.

    Raises:  ValueError for an array of objects.
    """
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise ValueError(f"array {name} holds Python objects")
    return dict(arrays)
