"""Find the back end of a target: the object that writes its code.

`BACKENDS` names the back ends of each kind of target, the preferred one first.  A back end is
imported when it is first used, so compiling with one loads no other.
"""

from __future__ import annotations

import importlib
from typing import Any, TypeVar

from tensorwright.base import ByKind, MachineError, Target, TargetKind, of_kind
from tensorwright.codegen import Backend

BACKENDS: ByKind[str] = {TargetKind.CPU: ("llvm", "c"), TargetKind.GPU: ("opencl", "cuda")}
"""Names of folders in `codegen/`.  The conformance tests check each that this machine can run."""

_Machine = TypeVar("_Machine", bound=Target)


def load_backend(name: str) -> Backend[Any]:
    """The back end of a folder in `codegen/`."""
    backend: Backend[Any] = importlib.import_module(f"tensorwright.codegen.{name}.backend").BACKEND
    return backend


def backend_of(target: _Machine) -> Backend[_Machine]:
    """The back end that builds the kernels of a target: the first one that supports the target.

    Raises:  MachineError if there is none.
    """
    reasons: list[str] = []
    for name in of_kind(BACKENDS, target, "back ends"):
        backend = load_backend(name)
        reason = backend.supports(target)
        if not reason:
            return backend
        reasons.append(f"{name}: {reason}")
    cause = "; ".join(reasons) or f"there is none for the kind {target.kind} yet"
    raise MachineError(
        stage="codegen",
        where=f"target {target}",
        reason=f"no back end has code for it ({cause})",
        remedy="name another target; `tensorwright doctor` lists what this machine compiles for",
    )
