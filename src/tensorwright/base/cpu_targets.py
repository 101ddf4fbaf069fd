"""What all targets have, whatever kind of machine they describe.

Lists by kind of machine: what each kind brings, in one mapping for each question.

PASSES: ByKind[Pass] = {TargetKind.CPU: (...), TargetKind.GPU: (...)}
of_kind(PASSES, target, "passes of loops")

Processors as targets: named ones from a table, this machine's from what Linux tells.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Protocol, TypeAlias, TypeVar

from tensorwright.base.errors import MachineError, UsageError
from tensorwright.base.machines import (
    available_cores,
    may_use_tiles,
    parse_cores,
    read_arm_flags,
    read_caches,
    read_flags,
    read_text,
)
from tensorwright.base.tensors import DType


class TargetKind(StrEnum):
    """Kinds of machines; back ends and devices are listed by kind."""

    CPU = "cpu"
    GPU = "gpu"


class TargetProtocol(Protocol):
    """A machine to compile for.

    Two targets share a `key` only if they may share programs and timings: the key of a record
    contains it.
    """

    @property
    def name(self) -> str:
        """The target's name for people: "native", "x86-64-avx2", "cuda:sm_90"."""
        ...

    @property
    def kind(self) -> TargetKind:
        """The kind of machine, for tables that are keyed by it."""
        ...

    @property
    def instructions(self) -> tuple[str, ...]:
        """What code uses besides the instructions that its architecture always has."""
        ...

    @property
    def key(self) -> str:
        """A stable text that stands for all that schedules and code depend on."""
        ...

    def missing_on(self, machine: TargetProtocol) -> str:
        """A message about what a machine lacks to run code for this target; "" for nothing."""
        ...


Entry = TypeVar("Entry")
ByKind: TypeAlias = Mapping[TargetKind, tuple[Entry, ...]]


def of_kind(lists: ByKind[Entry], target: TargetProtocol, what: str) -> tuple[Entry, ...]:
    """The list of a target's kind.

    what   its entries are, in the plural
    Raises:  MachineError where the kind has no list.
    """
    if target.kind in lists:
        return lists[target.kind]
    raise MachineError(
        stage="target",
        where=f"target {target}",
        reason=f"there are no {what} for machines of the kind {target.kind}",
        remedy="name a target of another kind: " + ", ".join(sorted(lists)),
    )


_LINUX_CPUINFO = Path("/proc/cpuinfo")
_LINUX_CPU0 = Path("/sys/devices/system/cpu/cpu0")
_LINUX_AUXV = Path("/proc/self/auxv")

# What Linux calls a feature -> what LLVM calls it; only what the code generator can make use of.
_X86_FEATURES = {
    "pni": "sse3",
    "ssse3": "ssse3",
    "sse4_1": "sse4.1",
    "sse4_2": "sse4.2",
    "popcnt": "popcnt",
    "avx": "avx",
    "f16c": "f16c",
    "fma": "fma",
    "movbe": "movbe",
    "abm": "lzcnt",
    "bmi1": "bmi",
    "bmi2": "bmi2",
    "avx2": "avx2",
    "avx_vnni": "avxvnni",
    "avx512f": "avx512f",
    "avx512cd": "avx512cd",
    "avx512dq": "avx512dq",
    "avx512bw": "avx512bw",
    "avx512vl": "avx512vl",
    "avx512vbmi": "avx512vbmi",
    "avx512_vnni": "avx512vnni",
    "avx512_bf16": "avx512bf16",
    "avx512_fp16": "avx512fp16",
    "amx_tile": "amx-tile",
    "amx_bf16": "amx-bf16",
    "amx_int8": "amx-int8",
    "amx_fp16": "amx-fp16",
}
_SSE = ("sse3", "ssse3", "sse4.1", "sse4.2", "popcnt")
_AVX2 = (*_SSE, "avx", "f16c", "fma", "movbe", "lzcnt", "bmi", "bmi2", "avx2")
_AVX512 = (*_AVX2, "avx512f", "avx512cd", "avx512dq", "avx512bw", "avx512vl")
_SHORT = ("avx512vnni", "avx512bf16")
_AMX = ("amx-tile", "amx-bf16", "amx-int8")


_ARM_FEATURES = {
    "asimd": "neon",
    "asimdhp": "fullfp16",
    "asimddp": "dotprod",
    "asimdfhm": "fp16fml",
    "i8mm": "i8mm",
    "bf16": "bf16",
}


@dataclass(frozen=True, slots=True)
class ShortProduct:
    """An instruction that multiplies rows of short numbers by columns and adds up the products.

    Meaning:  sums[r, c] += sum over g, m of data[r, g, m] * weights[c, g, m]    in type `sums`

    intrinsic   its name in a schedule
    features    what a target must have, in LLVM's names
    data        the type of the rows, each group of which may lie anywhere
    weights     the type of the columns
    rows, columns, groups, terms   the extents of r, c, g and m
    speed   its products in the time of one product in a vector of f32: a target may say another
    temporaries   registers that it needs beside the sums and the weights
    is_matrix   whether its operands are matrices in memory: rows of data at equal distances, each
                with its groups side by side, and weights group by group
    x86   the instruction of x86 that adds the products to its first operand; "" for others
    """

    intrinsic: str
    features: tuple[str, ...]
    data: DType
    weights: DType
    rows: int
    columns: int
    groups: int
    terms: int
    speed: float
    temporaries: int = 1
    sums: DType = DType.I32
    is_matrix: bool = False
    x86: str = ""

    @property
    def assembly(self) -> str:
        """What LLVM's text calls: of two operands and the sums before, the sums."""
        kind = "x" if self.x86.startswith("{vex}") else "v"  # registers that it can name
        return f'asm "{self.x86} $2, $1, $0", "={kind},{kind},{kind},0"'

    @property
    def width(self) -> int:
        """Columns of results that belong together."""
        return self.columns if self.is_matrix else self.rows * self.columns

    @property
    def run(self) -> int:
        """Terms of a row that lie side by side."""
        return self.groups * self.terms if self.is_matrix else self.terms

    @property
    def windows(self) -> tuple[int, ...]:
        """The elements side by side of the sums, of each run of each row, and of the weights."""
        column = self.groups * self.terms
        rows = (self.run,) * (self.rows * column // self.run)
        return (self.rows * self.columns, *rows, self.columns * column)

    def of_shape(self, rows: int, columns: int, groups: int) -> ShortProduct:
        """The instruction for other matrices: fewer columns or groups take the time of all."""
        shaped = _SHAPED.fullmatch(self.intrinsic)
        whole = shaped[1] if shaped else self.intrinsic
        name = f"{whole}_{rows}x{columns}x{groups}"
        speed = self.speed * columns * groups / (self.columns * self.groups)
        own = replace(self, intrinsic=name, rows=rows, columns=columns, groups=groups, speed=speed)
        return next((each for each in SHORT_PRODUCTS if replace(own, intrinsic=whole) == each), own)


def _tile(
    name: str,
    feature: str,
    data: DType,
    weights: DType,
    terms: int,
    speed: float,
    sums: DType = DType.I32,
) -> ShortProduct:
    """One of AMX: 16 rows of 64 bytes by 16 columns."""
    features = ("amx-tile", feature)
    return ShortProduct(
        name, features, data, weights, 16, 16, 16, terms, speed, sums=sums, is_matrix=True
    )


def _dot(
    name: str,
    x86: str,
    features: tuple[str, ...],
    data: DType,
    weights: DType,
    columns: int,
    terms: int,
    sums: DType = DType.I32,
) -> ShortProduct:
    """One of x86 that multiplies all terms of a group at once."""
    speed = float(terms)
    return ShortProduct(
        name, features, data, weights, 1, columns, 1, terms, speed, sums=sums, x86=x86
    )


_U8, _I8, _I16, _BF16 = DType.U8, DType.I8, DType.I16, DType.BF16
_VNNI, _SHORT_FLOATS = ("avx512f", "avx512vnni"), ("avx512f", "avx512bf16")
SHORT_PRODUCTS: tuple[ShortProduct, ...] = (
    _dot("dot4_u8i8_i32", "vpdpbusd", _VNNI, _U8, _I8, 16, 4),
    ShortProduct("dot4_u8i8_i32x4", ("neon", "i8mm"), _U8, _I8, 1, 4, 1, 4, 4.0),
    ShortProduct("dot4_i8i8_i32x4", ("neon", "dotprod"), _I8, _I8, 1, 4, 1, 4, 4.0),
    ShortProduct("mmla_u8i8_i32", ("neon", "i8mm"), _U8, _I8, 2, 2, 2, 4, 8.0),
    ShortProduct("mmla_i8i8_i32", ("neon", "i8mm"), _I8, _I8, 2, 2, 2, 4, 8.0),
    _dot("dot2_i16i16_i32", "vpdpwssd", _VNNI, _I16, _I16, 16, 2),
    ShortProduct("dot2_i16i16_i32x16", ("avx512f", "avx512bw"), _I16, _I16, 1, 16, 1, 2, 1.0, 2),
    ShortProduct("dot2_i16i16_i32x8", ("avx2",), _I16, _I16, 1, 8, 1, 2, 1.4, 2),
    _dot("dot4_u8i8_i32_ymm", "vpdpbusd", ("avx512vl", "avx512vnni"), _U8, _I8, 8, 4),
    _dot("dot4_u8i8_i32x8", "{vex} vpdpbusd", ("avx2", "avxvnni"), _U8, _I8, 8, 4),
    _dot("dot2_bf16", "vdpbf16ps", _SHORT_FLOATS, _BF16, _BF16, 16, 2, DType.F32),
    _tile("tile_bf16", "amx-bf16", _BF16, _BF16, 2, 4.5, DType.F32),
    _tile("tile_f16", "amx-fp16", DType.F16, DType.F16, 2, 4.5, DType.F32),
    _tile("tile_i8i8_i32", "amx-int8", _I8, _I8, 4, 9.0),
    _tile("tile_i8u8_i32", "amx-int8", _I8, _U8, 4, 9.0),
    _tile("tile_u8i8_i32", "amx-int8", _U8, _I8, 4, 9.0),
    _tile("tile_u8u8_i32", "amx-int8", _U8, _U8, 4, 9.0),
)
"""Those that a target has: the first that suits the operands is taken."""


@lru_cache(maxsize=1 << 10)
def short_product(intrinsic: str) -> ShortProduct | None:
    """The instruction of a name; None for others, which run as the loops that they stand for.

    One of matrices may be followed by the rows, columns and groups of smaller ones:
    tile_bf16_14x16x12.
    """
    whole = next((each for each in SHORT_PRODUCTS if each.intrinsic == intrinsic), None)
    shape = _SHAPED.fullmatch(intrinsic)
    if whole is not None or shape is None:
        return whole
    whole = short_product(shape[1])
    rows, columns, groups = (int(number) for number in shape.groups()[1:])
    if whole is None or not whole.is_matrix or not LEAST_MATRIX_ROWS <= rows <= whole.rows:
        return None
    is_part = columns <= whole.columns and groups <= whole.groups
    return whole.of_shape(rows, columns, groups) if is_part else None


_SHAPED = re.compile(r"(\w+?)_([1-9]\d?)x([1-9]\d?)x([1-9]\d?)")
LEAST_MATRIX_ROWS = 2
"""The fewest rows of an instruction of matrices: their distance is that of the first two."""
MOST_PACKED_ROWS = 8  # that share codes of packed weights, taken apart in registers


def multiplies_tiles(intrinsic: str) -> bool:
    """Whether an instruction multiplies matrices in tiles."""
    product = short_product(intrinsic)
    return product is not None and product.is_matrix


Speeds: TypeAlias = tuple[tuple[str, float], ...]
"""Of instructions that multiply short numbers, by name."""


@dataclass(frozen=True, slots=True)
class CpuTarget:
    """A processor, as far as schedules and code depend on it.

    `features` are LLVM's names. `cores` counts physical cores, `threads_per_core` hardware threads
    on each; how many threads a program uses is the knob `threads`, not this.
    `has_masks` says that a vector load or store under a mask costs no more than a plain one.
    `emulated` are features of an assumed machine that this one lacks: choices are made as if they
    were there, and code does without them. `speeds` are measured ones that differ from those of the
    records: choices depend on them, code does not.
    """

    kind: ClassVar[TargetKind] = TargetKind.CPU

    name: str
    arch: str
    triple: str
    features: tuple[str, ...]
    vector_bytes: int
    vector_registers: int
    fma: bool
    has_masks: bool
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    cores: int
    threads_per_core: int
    emulated: tuple[str, ...] = ()
    speeds: Speeds = ()

    @property
    def instructions(self) -> tuple[str, ...]:
        """The features that code uses."""
        return tuple(name for name in self.features if name not in self.emulated)

    @property
    def key(self) -> str:
        """A stable text; two targets share it only if they may share programs and timings."""
        digest = hashlib.sha256(",".join(sorted(self.features)).encode()).hexdigest()[:8]
        caches = f"{_size(self.l1_bytes)}/{_size(self.l2_bytes)}/{_size(self.l3_bytes)}"
        unit = f"v{self.vector_bytes}x{self.vector_registers}"
        without = f":without-{'-'.join(sorted(self.emulated))}" if self.emulated else ""
        cores = f"{self.cores}x{self.threads_per_core}"
        return f"{self.triple}:{unit}:{digest}:{caches}:{cores}{without}"

    @property
    def masks_loads(self) -> bool:
        """Whether a load of some lanes, of 4 or 8 bytes each, is one cheap instruction.

        A store need not be: where `has_masks` is false, it may take ten times as long.
        """
        return self.has_masks or "avx2" in self.features

    @property
    def spreads_operands(self) -> bool:
        """Whether a multiply-add takes one element as all lanes of an operand.

        Elsewhere (x86 before AVX-512) a load of its own spreads the element over a register.
        """
        return self.arch != "x86-64" or "avx512f" in self.features

    @property
    def multiplies_by_lane(self) -> bool:
        """Whether a multiply-add takes any lane of a register as all lanes of an operand.

        One load then serves several multiply-adds that take elements side by side in memory.
        """
        return self.arch == "aarch64"

    def short_products(self, rows: int = 1) -> tuple[ShortProduct, ...]:
        """The instructions that it has for products of short numbers of so many rows."""
        return tuple(p for p in self._products() if p.rows == rows)

    def matrix_products(self) -> tuple[ShortProduct, ...]:
        """The instructions that it has for products of matrices."""
        return tuple(p for p in self._products() if p.is_matrix)

    def _products(self) -> Iterator[ShortProduct]:
        had, speeds = set(self.features), dict(self.speeds)
        for each in SHORT_PRODUCTS:
            if set(each.features) <= had:
                yield replace(each, speed=speeds.get(each.intrinsic, each.speed))

    def is_fast(self, *data: DType) -> bool:
        """Whether an instruction makes more products of such data than one of f32 vectors."""
        return any(p.data in data and p.speed > 1 for p in self._products())

    @property
    def multiplies_bytes(self) -> bool:
        """Whether an instruction adds up products of bytes in 32 bits."""
        return any(product.weights is DType.I8 for product in self.short_products())

    @property
    def computes_halves(self) -> bool:
        """Whether it adds and multiplies f16 without converting to f32."""
        return "fullfp16" in self.features

    def lanes(self, dtype: DType) -> int:
        """How many elements of the type one vector register holds."""
        return self.vector_bytes // dtype.size_bytes

    def missing_on(self, machine: TargetProtocol) -> str:
        """A message about what a machine lacks to run code for this target; "" for nothing."""
        if not isinstance(machine, CpuTarget):
            return "it is not a processor"
        if self.triple != machine.triple:
            return f"it is {machine.triple}, not {self.triple}"
        lacking = sorted(set(self.instructions) - set(machine.instructions))
        return f"it has no {', '.join(lacking)}" if lacking else ""

    def __str__(self) -> str:
        return self.name


def _size(count_bytes: int) -> str:
    return f"{count_bytes // 1024}K"


def _x86(name: str, features: tuple[str, ...]) -> CpuTarget:
    """An x86-64 target with the caches of a common server core, to be replaced where known."""
    has_avx512 = set(_AVX512) <= set(features)
    has_avx2 = set(_AVX2) <= set(features)
    return CpuTarget(
        name=name,
        arch="x86-64",
        triple="x86_64-unknown-linux-gnu",
        features=features,
        vector_bytes=64 if has_avx512 else 32 if has_avx2 else 16,
        vector_registers=32 if has_avx512 else 16,
        fma="fma" in features,
        has_masks=has_avx512,
        l1_bytes=32 * 1024,
        l2_bytes=1024 * 1024,
        l3_bytes=16 * 1024 * 1024,
        cores=4,
        threads_per_core=2,
    )


_NEON = CpuTarget(
    name="aarch64-neon",
    arch="aarch64",
    triple="aarch64-unknown-linux-gnu",
    features=("neon",),
    vector_bytes=16,
    vector_registers=32,
    fma=True,
    has_masks=False,
    l1_bytes=32 * 1024,
    l2_bytes=512 * 1024,
    l3_bytes=4 * 1024 * 1024,
    cores=4,
    threads_per_core=1,
)

CPU_TARGETS: tuple[CpuTarget, ...] = (
    _x86("x86-64-sse2", ()),
    _x86("x86-64-avx2", _AVX2),
    _x86("x86-64-avx512", _AVX512),
    _x86("x86-64-amx", (*_AVX512, *_SHORT, *_AMX)),
    _NEON,
)


def with_features(target: CpuTarget, names: tuple[str, ...]) -> CpuTarget:
    """A target that has some features more, by LLVM's names.

    Raises:  UsageError for a name that no processor of the target's kind has.
    """
    usable = _X86_FEATURES if target.arch == "x86-64" else _ARM_FEATURES
    unknown = [name for name in names if name not in usable.values()]
    if unknown:
        raise UsageError(
            stage="target",
            where=f"target {target}",
            reason=f"there is no feature {', '.join(unknown)} to add to it",
            remedy="one of " + ", ".join(dict.fromkeys(usable.values())),
        )
    features = tuple(dict.fromkeys((*target.features, *names)))
    name = "+".join((target.name, *names))
    return (
        _x86(name, features)
        if target.arch == "x86-64"
        else replace(target, name=name, features=features)
    )


def _triple(arch: str) -> str:
    """LLVM's name of this machine's operating system and binary interface."""
    llvm_arch = {"x86-64": "x86_64", "aarch64": "aarch64"}[arch]
    if sys.platform == "darwin":
        return f"{'arm64' if arch == 'aarch64' else llvm_arch}-apple-darwin"
    if sys.platform == "win32":
        return f"{llvm_arch}-pc-windows-msvc"
    return f"{llvm_arch}-unknown-linux-gnu"


def detect_target() -> CpuTarget:
    """Describe this machine, from what Linux tells; elsewhere its smallest common denominator.

    Raises:  UsageError on a processor that is neither x86-64 nor AArch64.
    """
    machine = platform.machine().lower()
    if machine in ("x86_64", "amd64"):
        base = _x86("native", _usable_x86(read_flags(_LINUX_CPUINFO)))
    elif machine in ("aarch64", "arm64"):
        flags = read_arm_flags(_LINUX_AUXV)
        named = (llvm for linux, llvm in _ARM_FEATURES.items() if linux in flags)
        base = replace(_NEON, features=tuple(dict.fromkeys((*_NEON.features, *named))))
    else:
        raise UsageError(
            stage="target",
            where="target 'native'",
            reason=f"this machine is a {machine}, which is not supported",
            remedy="name one of " + ", ".join(target.name for target in CPU_TARGETS),
        )
    threads_per_core = _threads_per_core()
    caches = {cache.level: cache.size_bytes for cache in read_caches(_LINUX_CPU0 / "cache")}
    return replace(
        base,
        name="native",
        triple=_triple(base.arch),
        l1_bytes=caches.get(1, base.l1_bytes),
        l2_bytes=caches.get(2, base.l2_bytes),
        l3_bytes=caches.get(3, base.l3_bytes),
        cores=max(1, available_cores() // threads_per_core),
        threads_per_core=threads_per_core,
    )


def _usable_x86(flags: frozenset[str]) -> tuple[str, ...]:
    """LLVM's names of the flags, in the table's order.

    AVX without the whole of AVX2's level, and AVX-512 without the parts that our code relies on
    (old Xeon Phi), are left out: half a level is worth no code path of its own.  AMX is, where the
    kernel does not let this process use it.
    """
    named = tuple(llvm for linux, llvm in _X86_FEATURES.items() if linux in flags)
    if not set(_AVX2) <= set(named):
        return tuple(name for name in named if name in _SSE)
    if not set(_AVX512) <= set(named):
        return tuple(name for name in named if not name.startswith(("avx512", "amx")))
    if "amx-tile" in named and not may_use_tiles():
        return tuple(name for name in named if not name.startswith("amx"))
    return named


def _threads_per_core() -> int:
    """How many of this process's hardware threads share the first core with each other."""
    siblings = parse_cores(read_text(_LINUX_CPU0 / "topology" / "thread_siblings_list"))
    if hasattr(os, "sched_getaffinity"):
        siblings &= os.sched_getaffinity(0)
    return max(1, len(siblings))
