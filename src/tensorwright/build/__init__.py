"""From a workload and a trace to a kernel, and from kernels to an executable.

Read `build.py` first, then `cached_build.py` and `assemble.py`.
"""

from tensorwright.build.assemble import assemble, assemble_workload
from tensorwright.build.build import BuildRequest, Built, build, build_request
from tensorwright.build.cached_build import build_cached

__all__ = [
    "BuildRequest",
    "Built",
    "assemble",
    "assemble_workload",
    "build",
    "build_cached",
    "build_request",
]
