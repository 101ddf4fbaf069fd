"""What Linux tells about the caches and cores of a machine; what it does not is left out."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

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
