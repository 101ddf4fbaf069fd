"""CUDA back end: loop programs to CUDA C, and by NVRTC to machine code; no card is needed.

CUDA C++ without headers, as a dialect of the C family: what NVRTC compiles.

NVIDIA's compiler library NVRTC by ctypes: CUDA C++ to machine code, without a card.

The back end `cuda`: CUDA C++, compiled by NVRTC to the machine code of an architecture.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import re
import site
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorwright import base
from tensorwright.codegen import c_family
from tensorwright.codegen.backend import Source
from tensorwright.expr import Fn
from tensorwright.loop import LoopProgram
from tensorwright.schedule import ForKind

_ELEMENTS = {
    base.DType.F32: "float",
    base.DType.F64: "double",
    base.DType.F16: "unsigned short",
    base.DType.BF16: "unsigned short",
    base.DType.BOOL: "unsigned char",
    base.DType.I8: "signed char",
    base.DType.I16: "short",
    base.DType.I32: "int",
    base.DType.I64: "long long",
    base.DType.U8: "unsigned char",
    base.DType.U16: "unsigned short",
    base.DType.U32: "unsigned",
    base.DType.U64: "unsigned long long",
}
_VECTORS = {
    base.DType.F32: "float",
    base.DType.F64: "double",
    base.DType.BOOL: "uchar",
    base.DType.I8: "char",
    base.DType.I16: "short",
    base.DType.I32: "int",
    base.DType.I64: "longlong",
    base.DType.U8: "uchar",
    base.DType.U16: "ushort",
    base.DType.U32: "uint",
    base.DType.U64: "ulonglong",
}
_CONVERSIONS = {
    "from_f16": """static __device__ __forceinline__ float from_f16(unsigned short number) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(number));
    return wide;
}
""",
    "to_f16": """static __device__ __forceinline__ unsigned short to_f16(float number) {
    unsigned short narrow;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow) : "f"(number));
    return narrow;
}
""",
    "from_bf16": """static __device__ __forceinline__ float from_bf16(unsigned short number) {
    return __uint_as_float((unsigned)number << 16);
}
""",
    "to_bf16": """static __device__ __forceinline__ unsigned short to_bf16(float number) {
    const unsigned bits = __float_as_uint(number);
    if (number != number) return (unsigned short)(bits >> 16 | 0x40);
    return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
""",
}
_EXCHANGE = """template <typename T>
static __device__ __forceinline__ T exchange(T value, int distance, int lanes) {
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    const unsigned mask = (lanes == 32 ? ~0u : (1u << lanes) - 1) << (lane & ~(lanes - 1));
    return (T)__shfl_xor_sync(mask, value, distance);
}
"""
_COPIES = {
    "start_copy": """template <int bytes>
static __device__ __forceinline__ void start_copy(void *shared, const void *global) {
    const unsigned to = (unsigned)__cvta_generic_to_shared(shared);
    if (bytes == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(global),
                     "n"(bytes)
                     : "memory");
}
""",
    "commit_copies": """static __device__ __forceinline__ void commit_copies() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
""",
    "wait_copies": """template <int batches>
static __device__ __forceinline__ void wait_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(batches) : "memory");
}
""",
}
_LEAST = {bits: f"(-{(1 << (bits - 1)) - 1} - 1)" for bits in (8, 16, 32)}
_OWN_NAMES = """alignas alignof and and_eq bitand bitor bool catch char16_t char32_t class compl
    concept const_cast constexpr decltype delete dynamic_cast explicit export false friend mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public
    reinterpret_cast requires static_assert static_cast template this thread_local throw true try
    typeid typename using virtual wchar_t xor xor_eq threadIdx blockIdx blockDim gridDim warpSize
    dim3 shared min max sincos sincosf rsqrt rsqrtf exp10 exp10f isinf isfinite signbit clock"""

CUDA = c_family.Dialect(
    name="cuda",
    elements=_ELEMENTS,
    head="",
    function="static __device__ __forceinline__",
    restrict="__restrict__",
    index="long long",
    short_index="int",
    literal_64=("{}LL", "{}ULL"),
    least={**_LEAST, 64: "(-9223372036854775807LL - 1)"},
    greatest={
        (bits, is_signed): f"{(1 << (bits - is_signed)) - 1}{suffix if bits == 64 else ''}"
        for bits in c_family.INTEGER_BITS
        for is_signed, suffix in ((True, "LL"), (False, "ULL"))
    },
    float_suffix="f",
    has_doubles=False,
    nan="__int_as_float(0x7fc00000)",
    infinity="__int_as_float(0x7f800000)",
    conversions=_CONVERSIONS,
    float_bodies={Fn.ISINF: "return isinf(a) != 0;"},
    reserved=c_family.LANGUAGE_NAMES.union(
        (name + suffix for name in c_family.LIBRARY_NAMES for suffix in ("", "f", "l")),
        _OWN_NAMES.split(),
    ),
    vectors=c_family.Vectors(
        name=lambda dtype, lanes: f"{_VECTORS[dtype]}{lanes}",
        typedef=None,
        build="make_{kind}({lanes})",
        lane=(".x", ".y", ".z", ".w"),
        most_lanes=4,
        has_operators=False,
        has_arithmetic=False,
    ),
    grid=c_family.GridWords(
        kernel='extern "C" __global__ void __launch_bounds__({threads}{groups})',
        indices={
            ForKind.BLOCK_X: "blockIdx.x",
            ForKind.BLOCK_Y: "blockIdx.y",
            ForKind.BLOCK_Z: "blockIdx.z",
            ForKind.THREAD_X: "threadIdx.x",
            ForKind.THREAD_Y: "threadIdx.y",
            ForKind.THREAD_Z: "threadIdx.z",
        },
        barrier="__syncthreads();",
        unroll="#pragma unroll",
        global_space="",
        shared_space="",
        shared_declared="__shared__ ",
        align="__align__(16)",
        has_offsets=False,
        exchange=("exchange", _EXCHANGE),
        copies=_COPIES,
        dynamic_shared="extern __shared__ __align__(16) char shared[]",
        fast_functions={
            Fn.EXP: "__expf",
            Fn.LOG: "__logf",
            Fn.SIN: "__sinf",
            Fn.COS: "__cosf",
            Fn.TAN: "__tanf",
            Fn.POW: "__powf",
            Fn.RSQRT: "rsqrtf",
        },
    ),
)
"""The dialect of the back end `cuda`.

Source:  NVIDIA, CUDA C++ Programming Guide 13.0, C++ language extensions; PTX ISA 9.0, cvt.
"""


_REMEDY = "install it with its extra: pip install 'tensorwright[cuda]'"
_OPTIONS = ("--std=c++17", "--fmad=true")
_VERBOSE = "--ptxas-options=-v"
_LIBRARY, _BUILTINS = "libnvrtc.so.*", "libnvrtc-builtins.so.*"


_FUNCTION = re.compile(r"Compiling entry function '(\w+)'")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources that a thread of a function takes.

    stack_bytes     of arrays that are not in registers
    spilled_bytes   of stores and loads of values that did not fit into registers
    """

    function: str
    registers: int
    stack_bytes: int
    spilled_bytes: int

    def __str__(self) -> str:
        return (
            f"{self.function}: {self.registers} registers, {self.stack_bytes} bytes on the stack, "
            f"{self.spilled_bytes} bytes spilled"
        )


@dataclass(frozen=True, slots=True)
class Nvrtc:
    """The library, its version, and the numbers of the architectures that it knows."""

    library: Any
    version: tuple[int, int]
    architectures: tuple[int, ...]

    def machine_code(self, text: str, architecture: str, name: str) -> bytes:
        """The cubin of a file for an architecture, "sm_90a".

        Raises:  MachineError for an architecture that it does not know; InternalError if it
                 refuses the text.
        """
        self._check(architecture)
        return self._compiled(text, architecture, name, "CUBIN")[0]

    def resources(self, text: str, architecture: str, name: str) -> tuple[Resources, ...]:
        """The resources of each function of a file.  Raises: as `machine_code`."""
        return self.code_and_resources(text, architecture, name)[1]

    def code_and_resources(
        self, text: str, architecture: str, name: str
    ) -> tuple[bytes, tuple[Resources, ...]]:
        """The cubin, and the resources of each function.  Raises: as `machine_code`."""
        self._check(architecture)
        code, log = self._compiled(text, architecture, name, "CUBIN", _VERBOSE)
        return code, _resources(log)

    def assembly(self, text: str, architecture: str, name: str) -> str:
        """The PTX of a file, which people read.  Raises: as `machine_code`."""
        self._check(architecture)
        virtual = architecture.replace("sm_", "compute_")
        return self._compiled(text, virtual, name, "PTX")[0].rstrip(b"\0").decode()

    def _check(self, architecture: str) -> None:
        number = architecture.removeprefix("sm_").rstrip("af")
        if not number.isdigit() or int(number) not in self.architectures:
            listed = ", ".join(f"sm_{each}" for each in self.architectures)
            is_newer = number.isdigit() and int(number) > self.architectures[-1]
            raise base.MachineError(
                stage="codegen",
                where=f"architecture {architecture}",
                reason=f"NVRTC {self.version[0]}.{self.version[1]} does not know it: it knows "
                f"{listed}",
                remedy="upgrade it: pip install -U nvidia-cuda-nvrtc-cu12"
                if is_newer
                else "install another version of the package nvidia-cuda-nvrtc-cu12",
            )

    def _compiled(
        self, text: str, architecture: str, name: str, kind: str, *more: str
    ) -> tuple[bytes, str]:
        """The code of a kind, and the messages of the compiler; `more` options."""
        library, program = self.library, ctypes.c_void_p()
        made = library.nvrtcCreateProgram(
            ctypes.byref(program), text.encode(), f"{name}.cu".encode(), 0, None, None
        )
        _check_status(library, made, name)
        try:
            options = [f"--gpu-architecture={architecture}", *_OPTIONS, *more]
            given = (ctypes.c_char_p * len(options))(*(each.encode() for each in options))
            status = library.nvrtcCompileProgram(program, len(options), given)
            log = _read(library, program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
            _check_status(library, status, name, log)
            return _read(library, program, kind), log
        finally:
            library.nvrtcDestroyProgram(ctypes.byref(program))


@functools.cache
def find_nvrtc() -> Nvrtc | None:
    """The library of the package, else that of the system; None if there is none."""
    for path in _paths():
        try:
            for builtins in sorted(Path(path).parent.glob(_BUILTINS)):
                ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)  # NVRTC looks for it by name
            return _opened(ctypes.CDLL(path))
        except OSError:
            continue
    return None


def require_nvrtc() -> Nvrtc:
    """As `find_nvrtc`.  Raises: MachineError if there is none."""
    nvrtc = find_nvrtc()
    if nvrtc is None:
        raise base.MachineError(
            stage="codegen",
            where="CUDA",
            reason="NVIDIA's compiler library NVRTC is not installed",
            remedy=_REMEDY,
        )
    return nvrtc


def _paths() -> Iterator[str]:
    folders = [*site.getsitepackages(), site.getusersitepackages(), *sys.path]
    for folder in dict.fromkeys(folders):
        for path in sorted(Path(folder, "nvidia").glob(f"*/lib/{_LIBRARY}")):
            if ".alt." not in path.name:
                yield str(path)
    system = ctypes.util.find_library("nvrtc")
    if system is not None:
        yield system


def _opened(library: Any) -> Nvrtc:
    major, minor, count = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    numbers = (ctypes.c_int * count.value)()
    library.nvrtcGetSupportedArchs(numbers)
    return Nvrtc(library, (major.value, minor.value), tuple(numbers))


def _resources(log: str) -> tuple[Resources, ...]:
    """The assembler's report on each function, in the order in which it compiles them."""
    resources: list[Resources] = []
    for part in log.split("Compiling entry function")[1:]:
        function = _FUNCTION.search(f"Compiling entry function{part}")
        spills, registers = _SPILLS.search(part), _REGISTERS.search(part)
        if function is not None and spills is not None and registers is not None:
            stack, stores, loads = map(int, spills.groups())
            resources.append(Resources(function[1], int(registers[1]), stack, stores + loads))
    return tuple(resources)


def _read(library: Any, program: ctypes.c_void_p, kind: str) -> bytes:
    """One kind of output of a compiled program."""
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
    data = ctypes.create_string_buffer(max(1, size.value))
    getattr(library, f"nvrtcGet{kind}")(program, data)
    return data.raw[: size.value]


def _check_status(library: Any, status: int, name: str, log: str = "") -> None:
    if not status:
        return
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    error = library.nvrtcGetErrorString(status).decode()
    raise base.InternalError(
        stage="codegen",
        where=f"kernel {name}",
        reason=f"NVRTC refuses it: {error}\n{log[:4000]}",
    )


_VERSION = 1


@dataclass(frozen=True, slots=True)
class CudaBackend:
    """NVIDIA's graphics processors; its code is a cubin."""

    name: str = "cuda"
    suffix: str = "cu"

    def supports(self, target: base.GpuTarget) -> str:
        """Why nothing can be compiled for a target; "" if it can be."""
        return "" if target.api is base.GpuApi.CUDA else "its driver does not take CUDA code"

    def key(self) -> str:
        """The version of NVRTC, and how functions are written."""
        nvrtc = find_nvrtc()
        version = "none" if nvrtc is None else ".".join(map(str, nvrtc.version))
        return f"nvrtc:{version}:{_VERSION}:{'fast' if base.knobs.FAST_MATH.get() else 'exact'}"

    def emit(self, program: LoopProgram, target: base.GpuTarget) -> Source:
        """The text of one file, with a function for each launch."""
        fast_math, has_copies = base.knobs.FAST_MATH.get(), target.copies_ahead
        return c_family.emit_grid(program, target, CUDA, fast_math=fast_math, has_copies=has_copies)

    def compile(self, source: Source, target: base.GpuTarget) -> bytes:
        """A cubin."""
        nvrtc = require_nvrtc()
        return nvrtc.machine_code(source.text, target.arch, source.signature.symbol)

    def listing(self, source: Source, target: base.GpuTarget) -> str:
        """The resources of each function, and the PTX."""
        nvrtc, symbol = require_nvrtc(), source.signature.symbol
        taken = nvrtc.resources(source.text, target.arch, symbol)
        lines = "".join(f"// {each}\n" for each in taken)
        return lines + nvrtc.assembly(source.text, target.arch, symbol)


BACKEND = CudaBackend()
