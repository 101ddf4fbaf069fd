"""Load a saved executable, or build it again if it was compiled for another processor."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np

from tensorwright.base import CpuTarget, TargetKind, UsageError, cpu_target
from tensorwright.runtime.buffers import empty_bytes
from tensorwright.runtime.container import Contents, parse_container, read_container
from tensorwright.runtime.device import check_device, missing_device
from tensorwright.runtime.executable import Executable


class Recompile(Protocol):
    """Builds an executable for this machine from the sources in a file."""

    def __call__(self, contents: Contents, target: CpuTarget, threads: int | None) -> Executable:
        """An executable for `target`.  Raises: the errors of compiling."""
        ...


def load(
    source: str | os.PathLike[str] | bytes | bytearray | memoryview,
    threads: int | None = None,
    *,
    read: Callable[[Path], bytes] | None = None,
    recompile: Recompile | None = None,
    check_constants: bool = True,
) -> Executable:
    """Load what `Executable.save` wrote. The file holds machine code: load only what you trust.

    source            the path of a file, which is mapped, or the bytes of one
    threads           how many the kernels use; the knob `threads` if None
    read              returns the bytes of the file at a path, for example of an encrypted one
    recompile         called if the file is for another processor and holds sources
    check_constants   whether to compare constants with their digests, at about 10 GB/s

    Raises:  ModelError if the file is unreadable, foreign, of another version or damaged;
             MachineError with the missing instructions if this machine cannot run its code.
    """
    where = f"file {os.fspath(source)}" if isinstance(source, str | os.PathLike) else "the bytes"
    contents = _read(source, where, read, check_constants=check_constants)
    target = contents.plan.target
    is_processor = target.kind is TargetKind.CPU
    if is_processor and missing_device(target) and recompile is not None and contents.sources:
        return recompile(contents, cpu_target("native"), threads)
    remedy = "compile the model again on this machine, or for a target that it can run"
    check_device(target, "load", where, remedy)
    return Executable.of(contents, threads)


def _read(
    source: str | os.PathLike[str] | bytes | bytearray | memoryview,
    where: str,
    read: Callable[[Path], bytes] | None,
    *,
    check_constants: bool,
) -> Contents:
    """The contents of the source.

    Raises:  UsageError if `read` is given with bytes, or does not return bytes.
    """
    if isinstance(source, str | os.PathLike):
        if read is None:
            return read_container(source, check_constants)
        data: object = read(Path(source))
    elif read is None:
        data = source
    else:
        raise _wrong("read", "the source is bytes, which need no reading", "leave it out")
    if not isinstance(data, bytes | bytearray | memoryview):
        kind = type(data).__name__
        raise _wrong("source" if read is None else "read", f"{kind} is not bytes", "give bytes")
    given = np.frombuffer(data, np.uint8)
    memory = empty_bytes(given.size)  # aligned, so that kernels can read constants in place
    memory[:] = given
    memory.flags.writeable = False
    return parse_container(memory, where, check_constants)


def _wrong(argument: str, reason: str, remedy: str) -> UsageError:
    return UsageError(stage="load", where=f"argument {argument}", reason=reason, remedy=remedy)
