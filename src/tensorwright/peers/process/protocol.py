"""The protocol of competitors, their descriptions and their failures.

The process of a competitor does the jobs of `process.py`, which `process.py` sends.

The differences of the outputs of two runtimes.

The kinds of competitors. A new one is a module with a class that fulfils `Peer`, and a line.

Those of the package tensorwright-lab are named here, too; only their process imports them.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

import numpy as np

from tensorwright.base import LABORATORY, MachineError, require_laboratory, unknown_name

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


Steps: TypeAlias = Mapping[str, float]
NO_STEPS: Steps = MappingProxyType({})


def max_rel_error(ours: Arrays, theirs: Arrays, steps: Steps = NO_STEPS) -> float:
    """The largest difference of an element, over the largest element of that output of `theirs`.

    steps   outputs that `max_steps` judges; they do not count here
    The worst output counts. It is infinite if a name, a shape or a whole number differs, or if a
    number that is not finite differs.
    """
    if set(ours) != set(theirs):
        return math.inf
    errors = [_compare(ours[name], theirs[name]) for name in theirs if name not in steps]
    return max(errors, default=0.0)


def max_steps(ours: Arrays, theirs: Arrays, steps: Steps) -> float | None:
    """The largest difference of an element of a quantised output, in steps of that output.

    steps   the distance of two neighbouring numbers of each such output, by its name
    None if there is no such output; infinite if a shape differs.
    """
    errors = []
    for name, step in steps.items():
        a, b = (np.asarray(each.get(name, np.nan), np.float64) for each in (ours, theirs))
        is_near = a.shape == b.shape and np.isfinite(a).all() and np.isfinite(b).all()
        difference = float(np.max(np.abs(a - b), initial=0.0)) if is_near else math.inf
        errors.append(difference / step)
    return max(errors, default=None)


def describe_error(relative: float | None, steps: float | None) -> str:
    """The errors as a text for tables: in steps for quantised outputs, relative for others."""
    parts = [] if relative is None or (not relative and steps is not None) else [f"{relative:.1e}"]
    if steps is not None:
        parts.append(f"{steps:.2g} step{'s' * (round(steps, 2) != 1)}")
    return ", ".join(parts) or "-"


def _compare(ours: np.ndarray, theirs: np.ndarray) -> float:
    if ours.shape != theirs.shape:
        return math.inf
    if not (np.issubdtype(ours.dtype, np.floating) and np.issubdtype(theirs.dtype, np.floating)):
        return 0.0 if np.array_equal(ours, theirs) else math.inf
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(finite, np.isfinite(a)):
        return math.inf
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return math.inf
    difference = float(np.max(np.abs(a[finite] - b[finite]), initial=0.0))
    largest = float(np.max(np.abs(b[finite]), initial=0.0))
    if difference == 0.0:
        return 0.0
    return difference / largest if largest else math.inf


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of competitor.

    factory  its class, in a module that is imported in its process only
    package  the package that it needs, and `extra` of tensorwright that installs it; "" for none
    limit_s  most seconds of a command; some competitors compile for minutes
    program  that it calls; "" for none
    lacks    whether it lacks counterparts of some operators
    """

    name: str
    factory: str
    package: str = ""
    extra: str = ""
    limit_s: float = 300.0
    program: str = ""
    lacks: bool = False


_HERE = "tensorwright.peers.competitors"
_THERE = f"{LABORATORY}.competitors"

KINDS = (
    Kind("ours", f"{_THERE}.ours.OursPeer"),
    Kind("onnxruntime", f"{_HERE}.onnxruntime_peer.OnnxRuntimePeer", "onnxruntime", "bench"),
    Kind("openvino", f"{_HERE}.openvino_peer.OpenVinoPeer", "openvino", "bench"),
    Kind("pytorch", f"{_THERE}.pytorch_peer.TorchPeer", "torch", "torch", lacks=True),
    Kind(
        "inductor",
        f"{_THERE}.inductor_peer.InductorPeer",
        "torch",
        "torch",
        1800.0,
        "g++",
        lacks=True,
    ),
    Kind("tvm", f"{_THERE}.metaschedule.peer.TvmPeer", "tvm", "tvm", 7200.0),
    Kind("function", f"{_THERE}.function_peer.FunctionPeer"),
)


def find_kind(name: str) -> Kind:
    """The kind of that name.

    Raises:  UsageError for an unknown name; MachineError, naming the extra, for a package that is
             not installed, or a program that cannot be found.
    """
    for kind in KINDS:
        if kind.name == name:
            _require_package(kind)
            _require_program(kind)
            return kind
    names = (kind.name for kind in KINDS)
    raise unknown_name("peers", f"peer {name}", "no such kind of competitor", name, names)


def create_peer(kind: Kind) -> Peer:
    """Import the kind's module and make its peer."""
    module, _, name = kind.factory.rpartition(".")
    peer: Peer = getattr(importlib.import_module(module), name)()
    return peer


def _require_package(kind: Kind) -> None:
    is_of_laboratory = kind.factory.startswith(LABORATORY)
    if is_of_laboratory:
        require_laboratory(f"peer {kind.name}")
    package = "./lab" if is_of_laboratory else "tensorwright"
    if kind.package and importlib.util.find_spec(kind.package) is None:
        raise MachineError(
            stage="peers",
            where=f"peer {kind.name}",
            reason=f"the package {kind.package} is not installed",
            remedy=f"pip install '{package}[{kind.extra}]'",
        )


def _require_program(kind: Kind) -> None:
    if kind.program and shutil.which(kind.program) is None:
        raise MachineError(
            stage="peers",
            where=f"peer {kind.name}",
            reason=f"there is no program {kind.program}, which it calls",
            remedy=f"install {kind.program}, or leave this peer out",
        )
