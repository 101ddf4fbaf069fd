"""The fingerprint of this machine: what a measured time is valid for.

It is made of the instruction sets, the number of cores and the caches, and not of the CPU's name:
LLVM names some machines wrongly, and virtual machines name them as they like. Only instruction
sets that change generated code count, so that a new kernel, which reports more flags, does not
turn a machine into another one.
"""

from __future__ import annotations

import hashlib
import os
import platform
from dataclasses import dataclass
from pathlib import Path

_FEATURES = {
    "x86_64": (
        "sse4_2 avx f16c fma avx2 avx_vnni avx512f avx512dq avx512bw avx512vl avx512cd avx512ifma "
        "avx512_vnni avx512_bf16 avx512_fp16 amx_tile amx_int8 amx_bf16"
    ).split(),
    "aarch64": (
        "asimd fphp asimdhp asimddp asimdfhm sve sve2 i8mm svei8mm bf16 svebf16 sme sme2"
    ).split(),
}
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_LANDMARKS = ("amx_tile", "avx512f", "avx2", "avx", "sve2", "sve", "asimd")
_UNITS = {"K": 1024, "M": 1024**2, "G": 1024**3}


@dataclass(frozen=True, slots=True)
class Cache:
    """One cache as the first core sees it; `shared_by` counts the cores that share it."""

    level: int
    kind: str
    size_bytes: int
    line_bytes: int
    shared_by: int

    def __str__(self) -> str:
        kilobytes = f"{self.size_bytes // 1024} KiB"
        return f"L{self.level} {self.kind} {kilobytes}, line {self.line_bytes} bytes, " + (
            f"shared by {self.shared_by}" if self.shared_by > 1 else "of one core"
        )


@dataclass(frozen=True, slots=True)
class Hardware:
    """A machine, as far as the speed of a program depends on it.

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
    """Describe this machine. What it does not tell is left out, never guessed.

    The arguments are for tests: they stand in for the running machine's own.
    """
    name = (machine or platform.machine()).lower()
    name = _MACHINES.get(name, name)
    return Hardware(
        machine=name,
        cores=cores or os.cpu_count() or 1,
        features=_read_features(name, proc_cpuinfo),
        caches=_read_caches(cache_folder),
    )


def _read_features(machine: str, path: Path) -> tuple[str, ...]:
    flags: set[str] = set()
    for line in _read_text(path).splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            flags = set(value.split())
            break
    return tuple(sorted(flags & set(_FEATURES.get(machine, ()))))


def _read_caches(folder: Path) -> tuple[Cache, ...]:
    caches = []
    for index in sorted(folder.glob("index*")):
        kind = _read_text(index / "type").strip().lower()
        size = _parse_size(_read_text(index / "size").strip())
        level, line = _read_text(index / "level"), _read_text(index / "coherency_line_size")
        if kind in ("data", "unified") and size and level.strip().isdecimal():
            line_bytes = int(line) if line.strip().isdecimal() else 64
            shared = _count_cores(_read_text(index / "shared_cpu_list").strip())
            caches.append(Cache(int(level), kind, size, line_bytes, shared))
    return tuple(sorted(caches, key=lambda cache: (cache.level, cache.kind)))


def _count_cores(text: str) -> int:
    """How many cores a list such as "0-3,8" names."""
    count = 0
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal():
            count += int(last or first) - int(first) + 1
    return max(count, 1)


def _parse_size(text: str) -> int:
    """Bytes of a size such as "48K"; 0 where it cannot be read."""
    digits, unit = (text[:-1], _UNITS[text[-1]]) if text[-1:] in _UNITS else (text, 1)
    return int(digits) * unit if digits.isdecimal() else 0


def _read_text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
