"""What a competitor's process and the benchmark say to each other, and what a competitor must do.

The benchmark starts `python -m tensorwright.peers.process.worker KIND` and writes one JSON
object per line to its standard input; each is answered by one line. Arrays travel in .npz files of
a temporary folder. Nothing is pickled.

    {"command": "load", "path": P, "threads": 2, "options": {}}    -> {"ok": true, "version": V,
                                                                       "detail": D}
    {"command": "bind", "arrays": FILE, "names": [...]}            -> {"ok": true}
    {"command": "check", "arrays": FILE}                           -> {"ok": true, "names": [...]}
    {"command": "time", "number": 10, "repeat": 3}                 -> {"ok": true, "seconds": [...]}
    {"command": "park"}                                            -> {"ok": true}
    {"command": "quit"}                                            -> the process ends
    a refused command                                              -> {"ok": false, "reason": TEXT}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tensorwright.base import MachineError

Arrays = Mapping[str, np.ndarray[Any, np.dtype[Any]]]
"""Arrays by name, in the model's order."""

Message = dict[str, Any]
"""One line of the protocol, decoded."""


@dataclass(frozen=True, slots=True)
class PeerInfo:
    """What a competitor says of itself: its version, and how it runs the model."""

    version: str
    detail: str


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

    def park(self) -> None:
        """The turn is over: let go of the cores. The process is stopped after it."""


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


def encode(message: Mapping[str, object]) -> bytes:
    """One line of the protocol."""
    return json.dumps(message).encode() + b"\n"


def decode(line: bytes) -> Message:
    """The message of a line.

    Raises:  ValueError if it holds no JSON object.
    """
    message = json.loads(line)
    if not isinstance(message, dict):
        raise ValueError(f"not a message: {line[:80]!r}")
    return message


def write_arrays(path: Path, arrays: Arrays) -> list[str]:
    """Write the arrays by place and return their names, which may be any text.

    Raises:  ValueError for an array of objects.
    """
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise ValueError(f"array {name} holds Python objects")
    np.savez(path, *arrays.values())
    return list(arrays)


def read_arrays(path: Path, names: list[str]) -> Arrays:
    """Read what `write_arrays` wrote."""
    with np.load(path, allow_pickle=False) as file:
        return {name: file[f"arr_{place}"] for place, name in enumerate(names)}
