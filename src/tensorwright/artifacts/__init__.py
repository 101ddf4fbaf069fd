"""Build a kernel from a workload and a schedule, and an executable from kernels.

Read `kernel.py` first (from a schedule to loops and object code, and which back end builds for a
target), then `cached_build.py` and `assemble.py`.  Import
`c_library/` by itself: it needs the back end `c`, and compiling to an executable does not.
"""

from tensorwright.artifacts.assemble import (
    StepName, StepNames, View, assemble, assemble_workload, plan_sizes, read_step_names, step_names,
)
from tensorwright.artifacts.cached_build import (
    SOURCES, build_cached, find_kernel, keep_kernel, pack_kernel, unpack_kernel,
)
from tensorwright.artifacts.kernel import (
    BACKENDS, BuildRequest, Kernel, backend_of, build, build_kernel, build_program, build_request,
    emit_source, load_backend, load_kernel, loop_program,
)
