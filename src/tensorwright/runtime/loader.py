"""Load a saved executable, or build it again if it was compiled for another processor."""

from __future__ import annotations

import os
from typing import Protocol

from tensorwright.base import CpuTarget, TargetKind, detect_target
from tensorwright.runtime.container import Contents, read_container
from tensorwright.runtime.device import check_device, missing_device
from tensorwright.runtime.executable import Executable


class Recompile(Protocol):
    """Builds a program for this machine from the sources in a file."""

    def __call__(self, contents: Contents, target: CpuTarget, threads: int | None) -> Executable:
        """An executable for `target`; it raises the errors of compiling."""
        ...


def load(
    path: str | os.PathLike[str],
    threads: int | None = None,
    *,
    recompile: Recompile | None = None,
    check_constants: bool = True,
) -> Executable:
    """Load what `Executable.save` wrote. The file holds machine code: load only what you trust.

    threads           how many the kernels use; the knob `threads` where None
    recompile         called if the file is for another processor and holds sources
    check_constants   also compare large sections with their digests: about 1 GB/s

    Raises:  ModelError if the file is unreadable, foreign, of another version or damaged;
             MachineError with the missing instructions if this machine cannot run its code.
    """
    contents = read_container(path, check_constants)
    target = contents.plan.target
    is_processor = target.kind is TargetKind.CPU
    if is_processor and missing_device(target) and recompile is not None and contents.sources:
        return recompile(contents, detect_target(), threads)
    remedy = "compile the model again on this machine, or for a target that it can run"
    check_device(target, "load", f"file {os.fspath(path)}", remedy)
    return Executable(
        contents.plan,
        contents.objects,
        contents.constants,
        threads=threads,
        sources=contents.sources,
    )
