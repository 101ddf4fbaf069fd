"""OpenCL back end: loop programs to OpenCL C, which the driver of the device compiles.

OpenCL C 1.2 as a dialect of the C family.

The back end `opencl`: OpenCL C, which the driver compiles when it is loaded.

The code of a kernel is its text: drivers have different machine codes, and each caches what it has
compiled.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.base import DType, GpuApi, GpuTarget, knobs
from tensorwright.codegen import c_family
from tensorwright.codegen.backend import Source
from tensorwright.expr import Fn
from tensorwright.loop import LoopProgram
from tensorwright.schedule import ForKind

_ELEMENTS = {
    DType.F32: "float",
    DType.F64: "double",
    DType.F16: "ushort",
    DType.BF16: "ushort",
    DType.BOOL: "uchar",
    DType.I8: "char",
    DType.I16: "short",
    DType.I32: "int",
    DType.I64: "long",
    DType.U8: "uchar",
    DType.U16: "ushort",
    DType.U32: "uint",
    DType.U64: "ulong",
}
_INTEGERS = {8: "CHAR", 16: "SHRT", 32: "INT", 64: "LONG"}
_CONVERSIONS = {
    "from_f16": """inline float from_f16(ushort number) {
    return vload_half(0, (const half *)&number);
}
""",
    "to_f16": """inline ushort to_f16(float number) {
    ushort bits;
    vstore_half_rte(number, 0, (half *)&bits);
    return bits;
}
""",
    "from_bf16": """inline float from_bf16(ushort number) {
    return as_float((uint)number << 16);
}
""",
    "to_bf16": """inline ushort to_bf16(float number) {
    uint bits = as_uint(number);
    if (number != number) return (ushort)(bits >> 16 | 0x40);
    return (ushort)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
""",
}
_OWN_NAMES = """kernel global local constant private bool half uchar ushort uint ulong size_t
    read_only write_only read_write image2d_t sampler_t event_t complex imaginary half2 half4
    clamp degrees radians max min mix step sign dot cross length distance normalize select
    barrier mad fract exp10 rootn pown powr sincos rsqrt nan any all shuffle printf convert
    vload2 vload4 vstore2 vstore4 bitselect rotate popcount clz hadd mul24 mad24 upsample
    as_float as_uint as_int prefetch wait_group_events maxmag minmag nextafter ilogb logb
    remquo maxabs hypot smoothstep M_PI M_E"""

OPENCL = c_family.Dialect(
    name="opencl",
    elements=_ELEMENTS,
    head="",
    function="inline",
    restrict="restrict",
    index="long",
    short_index="int",
    literal_64=("{}L", "{}UL"),
    least={bits: f"{_INTEGERS[bits]}_MIN" for bits in c_family.INTEGER_BITS},
    greatest={
        (bits, is_signed): f"{'' if is_signed else 'U'}{_INTEGERS[bits]}_MAX"
        for bits in c_family.INTEGER_BITS
        for is_signed in (True, False)
    },
    float_suffix="",
    has_doubles=False,
    conversions=_CONVERSIONS,
    float_bodies={
        Fn.FLOORMOD: "T r = fmod(a, b);\n"
        "    return r == 0 ? copysign((T)0, b) : (r < 0) != (b < 0) ? r + b : r;",
    },
    reserved=frozenset((*c_family.LANGUAGE_NAMES, *c_family.LIBRARY_NAMES, *_OWN_NAMES.split())),
    vectors=c_family.Vectors(
        name=lambda dtype, lanes: f"{_ELEMENTS[dtype]}{lanes}",
        typedef=None,
        build="({kind})({lanes})",
        lane=(".s0", ".s1", ".s2", ".s3"),
        most_lanes=4,
        has_operators=False,
        in_memory="*({space}{const}{kind} *)&{at}",
        load="vload{lanes}(0, &{at})",
        store="vstore{lanes}({value}, 0, &{at})",
    ),
    grid=c_family.GridWords(
        kernel="__kernel __attribute__((reqd_work_group_size({x}, {y}, {z})))\nvoid",
        indices={
            ForKind.BLOCK_X: "get_group_id(0)",
            ForKind.BLOCK_Y: "get_group_id(1)",
            ForKind.BLOCK_Z: "get_group_id(2)",
            ForKind.THREAD_X: "get_local_id(0)",
            ForKind.THREAD_Y: "get_local_id(1)",
            ForKind.THREAD_Z: "get_local_id(2)",
        },
        barrier="barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
        unroll="#pragma unroll",
        global_space="__global ",
        shared_space="__local ",
        shared_declared="__local ",
        align="__attribute__((aligned(16)))",
        has_offsets=True,
        fast_functions={
            Fn.EXP: "native_exp",
            Fn.LOG: "native_log",
            Fn.SIN: "native_sin",
            Fn.COS: "native_cos",
            Fn.TAN: "native_tan",
            Fn.SQRT: "native_sqrt",
            Fn.RSQRT: "native_rsqrt",
        },
    ),
)
"""The dialect of the back end `opencl`.

Source:  The OpenCL C Specification 3.0, sections 6.3 (types), 6.15 (built-in functions).
"""


_VERSION = 1


@dataclass(frozen=True, slots=True)
class OpenClBackend:
    """Targets whose driver speaks OpenCL."""

    name: str = "opencl"
    suffix: str = "cl"

    def supports(self, target: GpuTarget) -> str:
        """Why nothing can be compiled for a target here; "" if it can be."""
        return "" if target.api is GpuApi.OPENCL else "its driver does not take OpenCL C"

    def key(self) -> str:
        """The language, and how functions are written."""
        return f"opencl:{_VERSION}:{'fast' if knobs.FAST_MATH.get() else 'exact'}"

    def emit(self, program: LoopProgram, target: GpuTarget) -> Source:
        """The text of one file, with a function for each launch."""
        return c_family.emit_grid(program, target, OPENCL, fast_math=knobs.FAST_MATH.get())

    def compile(self, source: Source, target: GpuTarget) -> bytes:
        """The text itself."""
        return source.text.encode()

    def listing(self, source: Source, target: GpuTarget) -> str:
        """The text itself, which people read."""
        return source.text


BACKEND = OpenClBackend()
