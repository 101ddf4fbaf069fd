"""C with vector extensions, as a dialect: gcc and clang compile it."""

from __future__ import annotations

from tensorwright.base import DType
from tensorwright.codegen.c_family import (
    INTEGER_BITS,
    LANGUAGE_NAMES,
    LIBRARY_NAMES,
    Dialect,
    Vectors,
)

_ELEMENTS = {
    DType.F32: "float",
    DType.F64: "double",
    DType.F16: "uint16_t",
    DType.BF16: "uint16_t",
    DType.BOOL: "uint8_t",
    DType.I8: "int8_t",
    DType.I16: "int16_t",
    DType.I32: "int32_t",
    DType.I64: "int64_t",
    DType.U8: "uint8_t",
    DType.U16: "uint16_t",
    DType.U32: "uint32_t",
    DType.U64: "uint64_t",
}
_HEAD = """#include <math.h>
#include <stdint.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

"""
FLOAT_STATE = """/* The float state of a thread: rounding; whether denormal numbers count as 0. */
#if defined(__x86_64__)
static inline uint64_t float_state(void) { return __builtin_ia32_stmxcsr(); }
static inline void set_float_state(uint64_t state) { __builtin_ia32_ldmxcsr((unsigned)state); }
#elif defined(__aarch64__)
static inline uint64_t float_state(void) {
    uint64_t state;
    __asm__ volatile("mrs %0, fpcr" : "=r"(state));
    return state;
}
static inline void set_float_state(uint64_t state) {
    __asm__ volatile("msr fpcr, %0" : : "r"(state));
}
#else
static inline uint64_t float_state(void) { return 0; }
static inline void set_float_state(uint64_t state) { (void)state; }
#endif
"""
_CONVERSIONS = {
    "from_f16": """static inline float from_f16(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7fff, bits;
    float number;
    if (rest >= 0x7c00) {
        bits = 0x7f800000 | (rest & 0x3ff) << 13;
    } else if (rest >= 0x400) {
        bits = (rest << 13) + (112u << 23);
    } else { /* subnormal: as f32 it is a normal number */
        number = (float)(int32_t)rest * 0x1p-24f;
        memcpy(&bits, &number, 4);
    }
    bits |= sign;
    memcpy(&number, &bits, 4);
    return number;
}
""",
    "to_f16": """static inline uint16_t to_f16(float number) {
    uint32_t bits, sign;
    memcpy(&bits, &number, 4);
    sign = bits >> 16 & 0x8000;
    bits &= 0x7fffffff;
    if (bits > 0x7f800000) return (uint16_t)(sign | 0x7e00);
    if (bits >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
    if (bits < 0x38800000) { /* subnormal: 0.5 has the same unit in the last place */
        number = fabsf(number) + 0.5f;
        memcpy(&bits, &number, 4);
        return (uint16_t)(sign | (bits - 0x3f000000));
    }
    bits += 0xfff + (bits >> 13 & 1);
    return (uint16_t)(sign | (bits - (112u << 23)) >> 13);
}
""",
    "from_bf16": """static inline float from_bf16(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    float number;
    memcpy(&number, &bits, 4);
    return number;
}
""",
    "to_bf16": """static inline uint16_t to_bf16(float number) {
    uint32_t bits;
    memcpy(&bits, &number, 4);
    if (number != number) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
""",
}


def _vector_name(dtype: DType, lanes: int) -> str:
    return f"{'u8' if dtype is DType.BOOL else dtype}x{lanes}"


def _vector_type(name: str, dtype: DType, lanes: int, is_anywhere: bool) -> str:
    """The definition of a vector type; the type for any address in memory may alias others."""
    anywhere = f", aligned({dtype.size_bytes}), may_alias" if is_anywhere else ""
    return (
        f"typedef {_ELEMENTS[dtype]} {name} "
        f"__attribute__((vector_size({lanes * dtype.size_bytes}){anywhere}));\n"
    )


C = Dialect(
    name="c",
    elements=_ELEMENTS,
    head=_HEAD,
    function="static inline",
    restrict="restrict",
    index="int64_t",
    short_index="int64_t",
    literal_64=("INT64_C({})", "UINT64_C({})"),
    least={bits: f"INT{bits}_MIN" for bits in INTEGER_BITS},
    greatest={
        (bits, is_signed): f"{'' if is_signed else 'U'}INT{bits}_MAX"
        for bits in INTEGER_BITS
        for is_signed in (True, False)
    },
    float_suffix="f",
    has_doubles=True,
    conversions=_CONVERSIONS,
    reserved=LANGUAGE_NAMES.union(
        name + suffix for name in LIBRARY_NAMES for suffix in ("", "f", "l")
    ),
    vectors=Vectors(
        name=_vector_name,
        typedef=_vector_type,
        build="({kind}){{{lanes}}}",
        lane="[{}]",
        has_types_anywhere=True,
    ),
)
"""The dialect of the back end `c`, for processors."""
