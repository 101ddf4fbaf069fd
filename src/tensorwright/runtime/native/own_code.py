"""The object code of the functions that this package writes itself, such as the driver.

It comes from the files that were compiled with the package (`prebuilt/`), then from the kernel
cache, and otherwise from LLVM.  The key is the text of the IR, so another version of a function is
another entry.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
from pathlib import Path

from tensorwright.base import CpuTarget, MachineError, knobs
from tensorwright.runtime.caches.kernel_cache import default_cache

PREBUILT = Path(__file__).parent / "prebuilt"
_COMPILATION = "tensorwright.machine_code.compilation"


def object_code_of(ir_text: str, target: CpuTarget) -> bytes:
    """The object code of a module for a target.

    Raises:  the errors of `compile_module`; MachineError if there is no LLVM to compile it.
    """
    try:
        return (PREBUILT / prebuilt_name(ir_text, target.arch)).read_bytes()
    except OSError:
        pass
    if not knobs.KERNEL_CACHE.get():
        return _compiled(ir_text, target)
    key = _digest("own code", _llvm_version(), target.key, ir_text)
    kept = default_cache().get(key)
    if kept is None:
        kept = _compiled(ir_text, target)
        default_cache().put(key, kept)
    return kept


def prebuilt_name(ir_text: str, arch: str) -> str:
    """The name of the module's file in `prebuilt/`, for any processor of an architecture."""
    return f"{_digest(arch, ir_text)[:32]}.o"


def _compiled(ir_text: str, target: CpuTarget) -> bytes:
    if importlib.util.find_spec("llvmlite") is None:
        raise MachineError(
            stage="runtime",
            where=f"target {target.name}",
            reason="this package has no precompiled code for it, and no LLVM to compile it",
            remedy="install tensorwright, which has LLVM",
        )
    code: bytes = importlib.import_module(_COMPILATION).compile_module(ir_text, target)
    return code


def _llvm_version() -> str:
    """The version of llvmlite, without loading LLVM."""
    return str(importlib.import_module("llvmlite").__version__)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
