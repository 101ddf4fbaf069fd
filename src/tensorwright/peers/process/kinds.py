"""The kinds of competitors. A new one is a module with a class that fulfils `Peer`, and a line.

Those of the package tensorwright-lab are named here, too; only their process imports them.
"""

from __future__ import annotations

import importlib
import importlib.util
import shutil
from dataclasses import dataclass

from tensorwright.base import LABORATORY, MachineError, require_laboratory, unknown_name
from tensorwright.peers.process.protocol import Peer


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
