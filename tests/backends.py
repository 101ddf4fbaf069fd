"""The back ends of tests: all that write code for processors, and two by name."""

from __future__ import annotations

from tensorwright.artifacts import BACKENDS, load_backend
from tensorwright.base import TargetKind

LLVM, C = load_backend("llvm"), load_backend("c")
CPU_BACKENDS = tuple(load_backend(name) for name in BACKENDS[TargetKind.CPU])
