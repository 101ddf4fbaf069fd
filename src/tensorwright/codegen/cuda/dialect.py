"""CUDA C++ without headers, as a dialect of the C family: what NVRTC compiles."""

from __future__ import annotations

from tensorwright.base import DType
from tensorwright.codegen.c_family import (
    INTEGER_BITS,
    LANGUAGE_NAMES,
    LIBRARY_NAMES,
    Dialect,
    GridWords,
    Vectors,
)
from tensorwright.expr import Fn
from tensorwright.schedule import ForKind

_ELEMENTS = {
    DType.F32: "float",
    DType.F64: "double",
    DType.F16: "unsigned short",
    DType.BF16: "unsigned short",
    DType.BOOL: "unsigned char",
    DType.I8: "signed char",
    DType.I16: "short",
    DType.I32: "int",
    DType.I64: "long long",
    DType.U8: "unsigned char",
    DType.U16: "unsigned short",
    DType.U32: "unsigned",
    DType.U64: "unsigned long long",
}
_VECTORS = {
    DType.F32: "float",
    DType.F64: "double",
    DType.BOOL: "uchar",
    DType.I8: "char",
    DType.I16: "short",
    DType.I32: "int",
    DType.I64: "longlong",
    DType.U8: "uchar",
    DType.U16: "ushort",
    DType.U32: "uint",
    DType.U64: "ulonglong",
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

CUDA = Dialect(
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
        for bits in INTEGER_BITS
        for is_signed, suffix in ((True, "LL"), (False, "ULL"))
    },
    float_suffix="f",
    has_doubles=False,
    nan="__int_as_float(0x7fc00000)",
    infinity="__int_as_float(0x7f800000)",
    conversions=_CONVERSIONS,
    float_bodies={Fn.ISINF: "return isinf(a) != 0;"},
    reserved=LANGUAGE_NAMES.union(
        (name + suffix for name in LIBRARY_NAMES for suffix in ("", "f", "l")), _OWN_NAMES.split()
    ),
    vectors=Vectors(
        name=lambda dtype, lanes: f"{_VECTORS[dtype]}{lanes}",
        typedef=None,
        build="make_{kind}({lanes})",
        lane=(".x", ".y", ".z", ".w"),
        most_lanes=4,
        has_operators=False,
        has_arithmetic=False,
    ),
    grid=GridWords(
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
