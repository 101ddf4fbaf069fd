"""Machines that can be assumed: what is otherwise read and measured of this machine, as data.

The knob `assume` names one (`TENSORWRIGHT_ASSUME=avx512-halves`): the target "native", the number
of threads and all rates are then those of that machine, on every machine. So a choice can be
repeated where it was not made. Code of the same architecture does without the instructions that
this machine lacks: LLVM splits the vectors, and a byte product is written as its meaning. Code of
another architecture is compiled, and refused when it would run. What is timed, is timed here.

How many cores this process may use: its affinity mask (cpusets are in it), cut by a quota.

A quota of control groups lets a group run for so many microseconds in each period. Version 2 has
`cpu.max`, version 1 `cpu.cfs_quota_us` and `cpu.cfs_period_us`; groups above count as well.

What Linux tells about the caches and cores of a machine; what it does not is left out.
"""

from __future__ import annotations

import ctypes
import math
import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

_GROUPS = Path("/proc/self/cgroup")
_ROOT = Path("/sys/fs/cgroup")
_FOLDERS_2 = ("", "unified")
_FOLDERS_1 = ("cpu", "cpu,cpuacct", "cpuacct,cpu")


def available_cores() -> int:
    """Hardware threads for this process; a quota is rounded down, to at least one."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    quota = cpu_quota()
    return count if quota is None else max(1, min(count, math.floor(quota)))


def cpu_quota(groups: Path = _GROUPS, root: Path = _ROOT) -> float | None:
    """The cores that the quotas of this process's control groups amount to; None without any.

    groups   as /proc/self/cgroup      root   where control groups are mounted
    """
    limits = (
        _limit_of(root / name / inner)
        for folders, path in _paths(groups)
        for name in folders
        for inner in (path, *map(str, PurePosixPath(path).parents))
    )
    return min((each for each in limits if each is not None), default=None)


def _paths(groups: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    """The folders where a hierarchy may be mounted, and the path of this process's group in it.

    Inside a container the path may be one of the host's, which is not there; its root counts then.
    """
    try:
        lines = groups.read_text().splitlines()
    except (OSError, ValueError):
        lines = []
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            yield _FOLDERS_2, path.lstrip("/")
        elif "cpu" in controllers.split(","):
            yield _FOLDERS_1, path.lstrip("/")


def _limit_of(folder: Path) -> float | None:
    """The quota of one group, in cores; None where it has none."""
    try:
        quota, period = (folder / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota = (folder / "cpu.cfs_quota_us").read_text()
            period = (folder / "cpu.cfs_period_us").read_text()
        except (OSError, ValueError):
            return None
    try:
        cores = int(quota) / int(period)
    except (ValueError, ZeroDivisionError):  # "max"
        return None
    return cores if cores > 0 else None


@dataclass(frozen=True, slots=True)
class AssumedMachine:
    """A machine by its name; caches in KiB, rates of a core in bytes per second.

    target          the name of the target with its instructions
    fused_bytes     of the vectors that a core multiplies and adds in a cycle
    l2, l3, memory  its caches and its memory: what a core reads from each
    """

    name: str
    target: str
    fused_bytes: int
    l1_kib: int
    l2_kib: int
    l3_kib: int
    l2_bytes_per_s: float
    l3_bytes_per_s: float
    memory_bytes_per_s: float
    cores: int = 2


_WITH_AVX512 = "x86-64-avx512+avx512vnni+avx512bf16"
_WITH_NEON = "aarch64-neon+fullfp16+dotprod"
ASSUMED: tuple[AssumedMachine, ...] = (
    # A Xeon of 2023: two units of 64 bytes; the third cache is hardly faster than the memory.
    AssumedMachine("avx512-wide", _WITH_AVX512, 128, 48, 2048, 107_520, 100e9, 15e9, 12e9),
    # An EPYC of 2022: its units are half as long as its vectors.
    AssumedMachine("avx512-halves", _WITH_AVX512, 64, 32, 1024, 32_768, 100e9, 60e9, 30e9),
    # A desktop of 2019, what every x86-64 processor has, and an ARM server of 2020.
    AssumedMachine("avx2", "x86-64-avx2", 64, 32, 512, 16_384, 80e9, 50e9, 25e9),
    AssumedMachine("sse2", "x86-64-sse2", 32, 32, 256, 8192, 40e9, 25e9, 12e9),
    AssumedMachine("neon", _WITH_NEON, 32, 64, 1024, 32_768, 50e9, 25e9, 20e9),
)
"""Each with the columns of the record."""


_ARCH_PRCTL, _ASK_FOR_STATE, _TILE_DATA = 158, 0x1023, 18


@lru_cache(maxsize=1)
def may_use_tiles() -> bool:
    """Ask the kernel, once a process, whether this process may use the tiles of AMX.

    Its threads have the permission, too, and a process that it forks; a new program asks again.
    """
    call = getattr(ctypes.CDLL(None), "syscall", None)
    return call is not None and call(_ARCH_PRCTL, _ASK_FOR_STATE, _TILE_DATA) == 0


LINE_BYTES = 64
"""A cache line on all processors for which code is made."""

_AUXILIARY_PAIR = struct.Struct("@LL")
_HWCAP, _HWCAP2 = 16, 26
_ARM_BITS = (
    *((_HWCAP, 1, "asimd"), (_HWCAP, 9, "fphp"), (_HWCAP, 10, "asimdhp"), (_HWCAP, 20, "asimddp")),
    *((_HWCAP, 22, "sve"), (_HWCAP, 23, "asimdfhm"), (_HWCAP2, 1, "sve2"), (_HWCAP2, 13, "i8mm")),
    *((_HWCAP2, 9, "svei8mm"), (_HWCAP2, 14, "bf16"), (_HWCAP2, 12, "svebf16")),
    *((_HWCAP2, 23, "sme"), (_HWCAP2, 37, "sme2")),
)
"""Entry of the auxiliary vector, bit, name: <asm/hwcap.h> of Linux on 64-bit ARM."""

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


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


@lru_cache(maxsize=8)  # they do not change while a process runs
def read_caches(folder: Path) -> tuple[Cache, ...]:
    """The data and unified caches that a folder of Linux describes, from the nearest on."""
    caches = []
    for index in folder.glob("index*"):
        kind = read_text(index / "type").lower()
        size_bytes = _parse_size(read_text(index / "size"))
        level, line = read_text(index / "level"), read_text(index / "coherency_line_size")
        if kind in ("data", "unified") and size_bytes and level.isdecimal():
            line_bytes = int(line) if line.isdecimal() else LINE_BYTES
            shared_by = max(1, len(parse_cores(read_text(index / "shared_cpu_list"))))
            caches.append(Cache(int(level), kind, size_bytes, line_bytes, shared_by))
    return tuple(sorted(caches, key=lambda cache: (cache.level, cache.kind)))


@lru_cache(maxsize=8)  # they do not change while a process runs
def read_flags(cpuinfo: Path) -> frozenset[str]:
    """The instruction sets that every listed processor has, by the names of Linux."""
    rows = re.findall(r"^(?:flags|Features)\s*:(.*)$", read_text(cpuinfo), re.MULTILINE)
    flags = [frozenset(row.split()) for row in rows]
    return frozenset.intersection(*flags) if flags else frozenset()


def read_arm_flags(auxiliary_vector: Path) -> frozenset[str]:
    """The instruction sets of 64-bit ARM that Linux tells a program when it starts it.

    All processors of the machine have them, and an emulator tells its own there. What it prints
    as /proc/cpuinfo may be that of the machine around.
    """
    try:
        data = auxiliary_vector.read_bytes()
    except OSError:
        return frozenset()
    whole = len(data) // _AUXILIARY_PAIR.size * _AUXILIARY_PAIR.size
    entries = dict(_AUXILIARY_PAIR.iter_unpack(data[:whole]))
    return frozenset(name for entry, bit, name in _ARM_BITS if entries.get(entry, 0) >> bit & 1)


def parse_cores(text: str) -> set[int]:
    """The numbers that a list such as "0-3,8" names."""
    cores: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal():
            cores.update(range(int(first), int(last or first) + 1))
    return cores


def read_text(path: Path) -> str:
    """The text of a file of the kernel's without spaces around it; "" where there is none."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def _parse_size(text: str) -> int:
    """Read "48K" or "2M" as a number of bytes; 0 for anything else."""
    size = re.fullmatch(r"(\d+)([KMG]?)", text)
    return int(size[1]) * _UNITS[size[2]] if size is not None else 0
