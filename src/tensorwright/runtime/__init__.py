"""What compiled code needs at run time.

Read jit.py first (object code to callable addresses), then openmp.py and kernel_cache.py.
"""

from tensorwright.runtime.jit import LoadedObject, load_object
from tensorwright.runtime.kernel_cache import (
    CacheCounts,
    KernelCache,
    compile_cached,
    default_cache,
    kernel_key,
)
from tensorwright.runtime.openmp import (
    OpenMP,
    Origin,
    find_openmp,
    openmp_runtime,
    release_threads,
    set_spin,
    usable_threads,
)
from tensorwright.runtime.peak import measure_bandwidth, measure_peak

__all__ = [
    "CacheCounts",
    "KernelCache",
    "LoadedObject",
    "OpenMP",
    "Origin",
    "compile_cached",
    "default_cache",
    "find_openmp",
    "kernel_key",
    "load_object",
    "measure_bandwidth",
    "measure_peak",
    "openmp_runtime",
    "release_threads",
    "set_spin",
    "usable_threads",
]
