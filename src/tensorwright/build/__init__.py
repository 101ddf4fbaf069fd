"""From a workload and a trace to a kernel, and from kernels to an executable.

Read `kernel.py` first (from a trace to object code), then `backend.py` (what a back end is),
`cached_build.py` and `assemble.py`.
"""

from tensorwright.build.assemble import assemble, assemble_workload
from tensorwright.build.backend import BACKENDS, LLVM, Backend, C, LoadedCode, backend_of
from tensorwright.build.c_library import CLibrary, write_c_library
from tensorwright.build.cached_build import SOURCES, build_cached, keep_kernel
from tensorwright.build.kernel import (
    BuildRequest,
    Kernel,
    build,
    build_kernel,
    build_request,
    emit_source,
    loop_program,
)
from tensorwright.build.step_names import StepName, StepNames, View, read_step_names, step_names

__all__ = [
    "BACKENDS",
    "LLVM",
    "SOURCES",
    "Backend",
    "BuildRequest",
    "C",
    "CLibrary",
    "Kernel",
    "LoadedCode",
    "StepName",
    "StepNames",
    "View",
    "assemble",
    "assemble_workload",
    "backend_of",
    "build",
    "build_cached",
    "build_kernel",
    "build_request",
    "emit_source",
    "keep_kernel",
    "loop_program",
    "read_step_names",
    "step_names",
    "write_c_library",
]
