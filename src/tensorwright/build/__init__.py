"""Build a kernel from a workload and a schedule, and an executable from kernels.

Read `loop_program.py` first (from a schedule to loops), then `kernel.py` (to object code),
`backend.py` (which back end builds for a target), `cached_build.py` and `assemble.py`.  Import
`c_library/` by itself: it needs the back end `c`, and compiling to an executable does not.
"""

from tensorwright.build.assemble import assemble, assemble_workload, plan_sizes
from tensorwright.build.backend import BACKENDS, backend_of, load_backend
from tensorwright.build.cached_build import (
    SOURCES,
    build_cached,
    find_kernel,
    keep_kernel,
    pack_kernel,
    unpack_kernel,
)
from tensorwright.build.kernel import (
    BuildRequest,
    Kernel,
    build,
    build_kernel,
    build_program,
    build_request,
    emit_source,
    load_kernel,
)
from tensorwright.build.loop_program import loop_program
from tensorwright.build.step_names import StepName, StepNames, View, read_step_names, step_names

__all__ = [
    "BACKENDS",
    "SOURCES",
    "BuildRequest",
    "Kernel",
    "StepName",
    "StepNames",
    "View",
    "assemble",
    "assemble_workload",
    "backend_of",
    "build",
    "build_cached",
    "build_kernel",
    "build_program",
    "build_request",
    "emit_source",
    "find_kernel",
    "keep_kernel",
    "load_backend",
    "load_kernel",
    "loop_program",
    "pack_kernel",
    "plan_sizes",
    "read_step_names",
    "step_names",
    "unpack_kernel",
]
