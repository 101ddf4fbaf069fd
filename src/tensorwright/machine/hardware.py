"""The fingerprint of a machine, for which a measured time is valid.

The fingerprint consists of the instruction sets, the number of cores and the caches. It does not
have the CPU's name, because LLVM names some machines wrongly and virtual machines choose any name.
Only instruction sets that change generated code count. So a newer Linux kernel, which reports more
flags, does not change the fingerprint.
"""

from __future__ import annotations

import hashlib
import os
import platform
from dataclasses import dataclass
from pathlib import Path

from tensorwright.base import Cache, read_arm_flags, read_caches, read_flags

_FEATURES = {
    "x86_64": (
        "sse4_2 avx f16c fma avx2 avx_vnni avx512f avx512dq avx512bw avx512vl avx512cd avx512ifma "
        "avx512_vnni avx512_bf16 avx512_fp16 amx_tile amx_int8 amx_bf16"
    ).split(),
    "aarch64": (
        "asimd fphp asimdhp asimddp asimdfhm sve sve2 i8mm svei8mm bf16 svebf16 sme sme2"
    ).split(),
}
_AUXILIARY_VECTOR = Path("/proc/self/auxv")
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_LANDMARKS = ("amx_tile", "avx512f", "avx2", "avx", "sve2", "sve", "asimd")


@dataclass(frozen=True, slots=True)
class Hardware:
    """The properties of a machine on which the speed of a program depends.

    features are sorted; caches run from the nearest to the farthest, data and unified ones only.
    """

    machine: str
    cores: int
    features: tuple[str, ...]
    caches: tuple[Cache, ...]

    @property
    def fingerprint(self) -> str:
        """Short stable key, "x86_64-2c-avx512f-1a2b3c4d": equal for machines of equal speed."""
        landmark = next((name for name in _LANDMARKS if name in self.features), "base")
        digest = hashlib.sha256(repr(self).encode()).hexdigest()
        return f"{self.machine}-{self.cores}c-{landmark}-{digest[:8]}"

    def __str__(self) -> str:
        lines = [f"{self.machine}, {self.cores} cores", "  features: " + " ".join(self.features)]
        lines += [f"  cache: {cache}" for cache in self.caches]
        return "\n".join(lines)


def detect_hardware(
    machine: str | None = None,
    cores: int | None = None,
    proc_cpuinfo: Path = Path("/proc/cpuinfo"),
    cache_folder: Path = Path("/sys/devices/system/cpu/cpu0/cache"),
) -> Hardware:
    """Describe this machine. Unknown properties are left out, never guessed.

    The arguments are for tests: they replace the files and properties of the running machine.
    """
    name = (machine or platform.machine()).lower()
    name = _MACHINES.get(name, name)
    flags = read_flags(proc_cpuinfo)
    if machine is None and name == "aarch64":
        flags |= read_arm_flags(_AUXILIARY_VECTOR)
    return Hardware(
        machine=name,
        cores=cores or os.cpu_count() or 1,
        features=tuple(sorted(flags & {*_FEATURES.get(name, ())})),
        caches=read_caches(cache_folder),
    )
