"""Caches on the disk: kernels, and whole executables."""

from tensorwright.runtime.caches.executable_cache import ExecutableCache, default_executable_cache
from tensorwright.runtime.caches.kernel_cache import KernelCache, default_cache, named_cache

__all__ = [
    "ExecutableCache",
    "KernelCache",
    "default_cache",
    "default_executable_cache",
    "named_cache",
]
