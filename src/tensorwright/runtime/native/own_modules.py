"""All code that running a network needs besides its kernels, to be compiled with the package."""

from __future__ import annotations

from tensorwright.runtime.native.call_loop import call_loop_function
from tensorwright.runtime.native.driver import driver_module
from tensorwright.runtime.native.pool import pool_ir


def own_modules(arch: str) -> tuple[str, ...]:
    """The LLVM IR of each module for an architecture."""
    return (
        driver_module(arch).text(),
        pool_ir(arch),
        call_loop_function(arch).module.text(),
    )
