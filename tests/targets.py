"""The targets of tests. A test that expects something of a target names it; one that only runs
code takes what this run of the tests is for: `make test-target` runs those marked for AVX2, too.
"""

from __future__ import annotations

from tensorwright.base import CpuTarget, cpu_target, knobs

SSE2, AVX2, AVX512, NEON = (
    cpu_target(name) for name in ("x86-64-sse2", "x86-64-avx2", "x86-64-avx512", "aarch64-neon")
)


def native_target() -> CpuTarget:
    """The target of tests that run code: this machine, or what the knob `target` names."""
    return cpu_target(knobs.TARGET.get())
