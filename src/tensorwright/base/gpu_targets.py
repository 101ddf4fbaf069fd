"""A graphics processor as a target.

How a device calls the functions of a kernel.

    Launch ::= Threads | Grid

A kernel has a tuple of launches, which run in order.  The first calls the kernel's symbol, number n
after it the symbol with `_n` at its end; all get the same arguments and the same scratch memory.

All named targets, and how to get one from its name.

    Target ::= CpuTarget | GpuTarget

parse_target("native")        this machine's processor, or the one that the knob `assume` names
parse_target("cuda:sm_90")    a named target, the same on every machine
parse_target("aarch64-neon+dotprod")    a named processor that has a feature more
cpu_target("x86-64-avx2")     the same, for code that concerns processors alone
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import ClassVar, TypeAlias

from tensorwright.base import cpu_targets
from tensorwright.base.errors import InternalError, MachineError, UsageError, did_you_mean
from tensorwright.base.knobs import ASSUME, assumed_machine
from tensorwright.base.machines import AssumedMachine
from tensorwright.base.tensors import DType, OpenSize


class GpuApi(StrEnum):
    """Which driver loads and launches the code."""

    CUDA = "cuda"
    OPENCL = "opencl"


_COPIES_SINCE = 80  # sm_80
ON_PROCESSOR = "processor"
"""The feature of a target that is a processor, which a driver shows as a graphics processor."""


@dataclass(frozen=True, slots=True)
class GpuTarget:
    """A graphics processor, as far as schedules and code depend on it.

    A multiprocessor runs up to `blocks_per_multiprocessor` blocks at once, which share its
    `registers` of 32 bits and its `shared_bytes`; `warp` threads of a block run in step.
    `static_shared_bytes` is what a block may have without asking, `opt_in_shared_bytes` the most
    that it may ask for.  `bandwidth` is in bytes per second.  `flops` are multiply-adds counted as
    two, per second, for the fastest unit of each type; what is not listed has no unit.
    """

    kind: ClassVar[cpu_targets.TargetKind] = cpu_targets.TargetKind.GPU

    name: str
    api: GpuApi
    arch: str
    multiprocessors: int
    warp: int
    threads_per_block: int
    registers: int
    static_shared_bytes: int
    opt_in_shared_bytes: int
    shared_bytes: int
    blocks_per_multiprocessor: int
    l2_bytes: int
    bandwidth: float
    flops: tuple[tuple[DType, float], ...]
    features: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """A stable text; cards of one architecture differ in multiprocessors or bandwidth."""
        facts = [str(getattr(self, each.name)) for each in fields(self) if each.name != "name"]
        digest = hashlib.sha256(",".join(facts).encode()).hexdigest()[:8]
        return f"{self.api}:{self.arch}:{self.multiprocessors}x{self.warp}:{digest}"

    @property
    def copies_ahead(self) -> bool:
        """Whether it copies to shared memory by itself while threads compute (cp.async)."""
        number = self.arch.removeprefix("sm_").rstrip("af")
        is_number = self.api is GpuApi.CUDA and number.isdigit()
        return is_number and int(number) >= _COPIES_SINCE

    @property
    def is_processor(self) -> bool:
        """Whether its threads run one after the other, and its caches are all the shared memory."""
        return ON_PROCESSOR in self.features

    @property
    def instructions(self) -> tuple[str, ...]:
        """The features that code uses: all."""
        return self.features

    def missing_on(self, machine: cpu_targets.TargetProtocol) -> str:
        """A message about what a machine lacks to run code for this target; "" for nothing."""
        if not isinstance(machine, GpuTarget):
            return "it is not a graphics processor"
        if (self.api, self.arch) != (machine.api, machine.arch):
            return f"it is {machine.api}:{machine.arch}, not {self.api}:{self.arch}"
        return ""

    def __str__(self) -> str:
        return self.name


_KIB, _MIB = 1024, 1024 * 1024


def _card(
    arch: str,
    multiprocessors: int,
    opt_in_kib: int,
    blocks: int,
    l2_mib: int,
    bandwidth: float,
    **tera: float,
) -> GpuTarget:
    """A card of NVIDIA; its memory that threads share exceeds what a block may have by one KiB.

    tera   10**12 multiplications and additions a second, by types
    """
    reserved_kib = 1 if int(arch[3:5]) >= _COPIES_SINCE else 0
    return GpuTarget(
        name=f"cuda:{arch}",
        api=GpuApi.CUDA,
        arch=arch,
        multiprocessors=multiprocessors,
        warp=32,
        threads_per_block=1024,
        registers=64 * _KIB,
        static_shared_bytes=48 * _KIB,
        opt_in_shared_bytes=opt_in_kib * _KIB,
        shared_bytes=(opt_in_kib + reserved_kib) * _KIB,
        blocks_per_multiprocessor=blocks,
        l2_bytes=l2_mib * _MIB,
        bandwidth=bandwidth,
        flops=tuple((DType(name), float(f"{rate}e12")) for name, rate in tera.items()),
    )


_T4 = _card("sm_75", 40, 64, 16, 4, 320e9, f16=65, f32=8.1, f64=0.25, i8=130)
_A100 = _card("sm_80", 108, 163, 32, 40, 1.555e12, bf16=312, f16=312, f32=19.5, f64=19.5, i8=624)
_A10 = _card("sm_86", 72, 99, 16, 6, 600e9, bf16=125, f16=125, f32=31.2, f64=0.976, i8=250)
_H100_RATES = {"bf16": 989.4, "f16": 989.4, "f32": 66.9, "f64": 66.9, "i8": 1978.9}
_H100 = _card("sm_90", 132, 227, 32, 50, 3.35e12, **_H100_RATES)
"""Cards: a T4, an A100 SXM4 of 40 GB, an A10 and an H100 SXM5.

Source:  NVIDIA, for rates, without sparsity: T4 data sheet (2019); A100 Tensor Core GPU
         Architecture (white paper, 2020); A10 data sheet (2021); H100 Tensor Core GPU Architecture
         (white paper, 2022), table of the H100 SXM5.  For limits: CUDA C++ Programming Guide,
         technical specifications of compute capabilities.
"""

_H100A = replace(_H100, name="cuda:sm_90a", arch="sm_90a")
"""The same card, with the instructions that only its architecture has (wgmma)."""

_GENERIC = GpuTarget(
    name="opencl:generic",
    api=GpuApi.OPENCL,
    arch="generic",
    multiprocessors=8,
    warp=32,
    threads_per_block=256,
    registers=32 * _KIB,
    static_shared_bytes=32 * _KIB,
    opt_in_shared_bytes=32 * _KIB,
    shared_bytes=64 * _KIB,
    blocks_per_multiprocessor=8,
    l2_bytes=_MIB,
    bandwidth=5e10,
    flops=((DType.F32, 1e12),),
)
"""A small device with OpenCL, which stands for no product.

Source:  The OpenCL Specification 3.0, section 4.2, for the 32 KiB of local memory that every device
         of the full profile has; all else is a low estimate, to be replaced where known.
"""

GPU_TARGETS = (_T4, _A100, _A10, _H100, _H100A, _GENERIC)


Extents: TypeAlias = tuple[int, int, int]
GridExtents: TypeAlias = tuple[int | OpenSize, int | OpenSize, int | OpenSize]


@dataclass(frozen=True, slots=True)
class Threads:
    """One call of a C function, which shares out its loops over a team of threads by itself."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A call by a driver: blocks of threads, in x, y and z; each thread runs the function.

    grid           numbers of blocks; nothing runs where one of them is 0. With named sizes, they
                   are computed when the kernel is called
    shared_bytes   of memory for each block, besides what the code declares
    """

    grid: GridExtents
    block: Extents
    shared_bytes: int = 0

    def __post_init__(self) -> None:
        blocks = [each for each in self.grid if isinstance(each, int)]
        if min(blocks, default=0) < 0 or min(self.block) < 1 or self.shared_bytes < 0:
            raise InternalError(
                stage="codegen",
                where=f"launch {self}",
                reason="its block is empty, or its grid or its shared memory is negative",
            )

    def __str__(self) -> str:
        grid, block = ("x".join(map(str, each)) for each in (self.grid, self.block))
        shared = f", {self.shared_bytes} bytes shared" if self.shared_bytes else ""
        return f"grid {grid} of {block}{shared}"


Launch: TypeAlias = Threads | Grid

ON_THREADS: tuple[Launch, ...] = (Threads(),)
"""What kernels for processors have: one launch."""


Target: TypeAlias = cpu_targets.CpuTarget | GpuTarget

TARGETS: tuple[Target, ...] = (*cpu_targets.CPU_TARGETS, *GPU_TARGETS)
NAMES_OF_DEVICES = ("opencl", "cuda")
"""Names that stand for a device of this machine, which the runtime asks what it is."""


def parse_target(text: str) -> Target:
    """Read "native" or a name of `TARGETS`, with "+feature" for each feature that it has besides.

    Raises:  UsageError for an unknown name, with the nearest known one, or an unknown feature.
    """
    if text == "native":
        assumed = assumed_machine()
        return cpu_targets.detect_target() if assumed is None else _assumed_target(assumed)
    base, *more = text.split("+")
    for target in TARGETS:
        if target.name == base:
            return cpu_targets.with_features(cpu_target(target), tuple(more)) if more else target
    names = ["native", *NAMES_OF_DEVICES, *(target.name for target in TARGETS)]
    hint = did_you_mean(text, names)
    listed = "one of " + ", ".join(names)
    raise UsageError(
        stage="target",
        where=f"target {text!r}",
        reason="no such target",
        remedy=f"{hint} ({listed})" if hint else listed,
    )


@functools.cache
def _assumed_target(machine: AssumedMachine) -> cpu_targets.CpuTarget:
    target, here = cpu_target(machine.target), _this_machine()
    lacking = tuple(name for name in target.features if name not in here.features)
    return replace(
        target,
        name="native",
        emulated=lacking if target.triple == here.triple else (),
        l1_bytes=machine.l1_kib * 1024,
        l2_bytes=machine.l2_kib * 1024,
        l3_bytes=machine.l3_kib * 1024,
        cores=machine.cores,
        threads_per_core=1,
    )


def cpu_target(target: Target | str) -> cpu_targets.CpuTarget:
    """The processor that a name, or a target, stands for.

    Code for processors alone calls this once, where it gets a target from a user. Behind that entry
    the type is `CpuTarget`.
    Raises:  UsageError for an unknown name; MachineError for a target that is not a processor.
    """
    is_name = isinstance(target, str) and target not in NAMES_OF_DEVICES
    named = parse_target(str(target)) if is_name else target
    if isinstance(named, cpu_targets.CpuTarget):
        return named
    raise MachineError(
        stage="target",
        where=f"target {named}",
        reason="only processors have what this asks for",
        remedy="name a processor, one of native, "
        + ", ".join(each.name for each in cpu_targets.CPU_TARGETS),
    )


@functools.cache
def _this_machine() -> cpu_targets.CpuTarget:
    """The target of this machine, which does not change."""
    return cpu_targets.detect_target()


def missing_here(target: Target) -> str:
    """A message about what this machine lacks to run code for a target; "" for nothing."""
    return target.missing_on(_this_machine())


def check_runs_here(target: Target, stage: str, where: str = "", remedy: str = "") -> None:
    """Refuse to run code for a target here, before the processor does: it would end the process.

    Code that loads object code, or starts a process that will, calls this first.
    Raises:  MachineError that names what this machine lacks.
    """
    missing = missing_here(target)
    if missing:
        if target.name == "native" and ASSUME.get():
            remedy = f"unset {ASSUME.variable}: this machine is no {ASSUME.get()}"
        raise MachineError(
            stage=stage,
            where=f"{where}, target {target}" if where else f"target {target}",
            reason=f"this machine cannot run its code: {missing}",
            remedy=remedy or "compile for the target 'native', or run it on such a machine",
        )
