"""A graphics processor as a target."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import ClassVar

from tensorwright.base.dtypes import DType
from tensorwright.base.targets.protocol import TargetKind, TargetProtocol


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

    kind: ClassVar[TargetKind] = TargetKind.GPU

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

    def missing_on(self, machine: TargetProtocol) -> str:
        """A message about what a machine lacks to run code for this target; "" for nothing."""
        if not isinstance(machine, GpuTarget):
            return "it is not a graphics processor"
        if (self.api, self.arch) != (machine.api, machine.arch):
            return f"it is {machine.api}:{machine.arch}, not {self.api}:{self.arch}"
        return ""

    def __str__(self) -> str:
        return self.name


_SM_90 = GpuTarget(
    name="cuda:sm_90",
    api=GpuApi.CUDA,
    arch="sm_90",
    multiprocessors=132,
    warp=32,
    threads_per_block=1024,
    registers=64 * 1024,
    static_shared_bytes=48 * 1024,
    opt_in_shared_bytes=227 * 1024,
    shared_bytes=228 * 1024,
    blocks_per_multiprocessor=32,
    l2_bytes=50 * 1024 * 1024,
    bandwidth=3.35e12,
    flops=(
        (DType.BF16, 989.4e12),
        (DType.F16, 989.4e12),
        (DType.F32, 66.9e12),
        (DType.F64, 66.9e12),
        (DType.I8, 1978.9e12),
    ),
)
"""An H100 SXM5.

Source:  NVIDIA, H100 Tensor Core GPU Architecture (white paper, 2022), table of the H100 SXM5, for
         rates, without sparsity; NVIDIA, CUDA C++ Programming Guide, technical specifications of
         compute capability 9.0, for limits.
"""

_SM_90A = replace(_SM_90, name="cuda:sm_90a", arch="sm_90a")
"""The same card, with the instructions that only its architecture has (wgmma)."""

_SM_75 = GpuTarget(
    name="cuda:sm_75",
    api=GpuApi.CUDA,
    arch="sm_75",
    multiprocessors=40,
    warp=32,
    threads_per_block=1024,
    registers=64 * 1024,
    static_shared_bytes=48 * 1024,
    opt_in_shared_bytes=64 * 1024,
    shared_bytes=64 * 1024,
    blocks_per_multiprocessor=16,
    l2_bytes=4 * 1024 * 1024,
    bandwidth=320e9,
    flops=(
        (DType.F16, 65e12),
        (DType.F32, 8.1e12),
        (DType.F64, 0.25e12),
        (DType.I8, 130e12),
    ),
)
"""A T4.

Source:  NVIDIA, T4 data sheet (2019), for rates; CUDA C++ Programming Guide, technical
         specifications of compute capability 7.5, for limits.
"""

_SM_80 = GpuTarget(
    name="cuda:sm_80",
    api=GpuApi.CUDA,
    arch="sm_80",
    multiprocessors=108,
    warp=32,
    threads_per_block=1024,
    registers=64 * 1024,
    static_shared_bytes=48 * 1024,
    opt_in_shared_bytes=163 * 1024,
    shared_bytes=164 * 1024,
    blocks_per_multiprocessor=32,
    l2_bytes=40 * 1024 * 1024,
    bandwidth=1.555e12,
    flops=(
        (DType.BF16, 312e12),
        (DType.F16, 312e12),
        (DType.F32, 19.5e12),
        (DType.F64, 19.5e12),
        (DType.I8, 624e12),
    ),
)
"""An A100 SXM4 of 40 GB.

Source:  NVIDIA, A100 Tensor Core GPU Architecture (white paper, 2020), for rates, without sparsity;
         CUDA C++ Programming Guide, technical specifications of compute capability 8.0, for limits.
"""

_SM_86 = GpuTarget(
    name="cuda:sm_86",
    api=GpuApi.CUDA,
    arch="sm_86",
    multiprocessors=72,
    warp=32,
    threads_per_block=1024,
    registers=64 * 1024,
    static_shared_bytes=48 * 1024,
    opt_in_shared_bytes=99 * 1024,
    shared_bytes=100 * 1024,
    blocks_per_multiprocessor=16,
    l2_bytes=6 * 1024 * 1024,
    bandwidth=600e9,
    flops=(
        (DType.BF16, 125e12),
        (DType.F16, 125e12),
        (DType.F32, 31.2e12),
        (DType.F64, 0.976e12),
        (DType.I8, 250e12),
    ),
)
"""An A10.

Source:  NVIDIA, A10 data sheet (2021), for rates, without sparsity; CUDA C++ Programming Guide,
         technical specifications of compute capability 8.6, for limits.
"""

_GENERIC = GpuTarget(
    name="opencl:generic",
    api=GpuApi.OPENCL,
    arch="generic",
    multiprocessors=8,
    warp=32,
    threads_per_block=256,
    registers=32 * 1024,
    static_shared_bytes=32 * 1024,
    opt_in_shared_bytes=32 * 1024,
    shared_bytes=64 * 1024,
    blocks_per_multiprocessor=8,
    l2_bytes=1024 * 1024,
    bandwidth=5e10,
    flops=((DType.F32, 1e12),),
)
"""A small device with OpenCL, which stands for no product.

Source:  The OpenCL Specification 3.0, section 4.2, for the 32 KiB of local memory that every device
         of the full profile has; all else is a low estimate, to be replaced where known.
"""

GPU_TARGETS = (_SM_75, _SM_80, _SM_86, _SM_90, _SM_90A, _GENERIC)
