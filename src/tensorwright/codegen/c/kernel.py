"""A bound loop program to the text of a C file with one kernel.

The kernel is `void NAME(void **args, void *workspace, int threads)`, as `codegen.Signature` says.
Where the compiler knows OpenMP, parallel loops run on `threads` threads.

C with vector extensions, as a dialect: gcc and clang compile it.

Statements on a processor: threads of OpenMP, register tiles, the workspace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tensorwright import loop
from tensorwright.base import CpuTarget, DType
from tensorwright.codegen import analysis, c_family
from tensorwright.codegen.backend import Signature, Source
from tensorwright.expr import NamedSize, maximum

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


C = c_family.Dialect(
    name="c",
    elements=_ELEMENTS,
    head=_HEAD,
    function="static inline",
    restrict="restrict",
    index="int64_t",
    short_index="int64_t",
    literal_64=("INT64_C({})", "UINT64_C({})"),
    least={bits: f"INT{bits}_MIN" for bits in c_family.INTEGER_BITS},
    greatest={
        (bits, is_signed): f"{'' if is_signed else 'U'}INT{bits}_MAX"
        for bits in c_family.INTEGER_BITS
        for is_signed in (True, False)
    },
    float_suffix="f",
    has_doubles=True,
    conversions=_CONVERSIONS,
    reserved=c_family.LANGUAGE_NAMES.union(
        name + suffix for name in c_family.LIBRARY_NAMES for suffix in ("", "f", "l")
    ),
    vectors=c_family.Vectors(
        name=_vector_name,
        typedef=_vector_type,
        build="({kind}){{{lanes}}}",
        lane="[{}]",
        has_types_anywhere=True,
    ),
)
"""The dialect of the back end `c`, for processors."""


_FLOAT_STATE = f"#ifdef _OPENMP\n{FLOAT_STATE}#endif\n"  # for the threads of parallel loops


@dataclass(slots=True)
class Kernel:
    """What the functions of one kernel share while they are written.

    slice_bytes   a C expression: how much memory each thread has to itself
    """

    name: str
    target: CpuTarget
    facts: analysis.Facts
    slice_bytes: str
    helpers: c_family.Helpers = field(default_factory=lambda: c_family.Helpers(C))
    workspace: analysis.Workspace = field(default_factory=analysis.Workspace)
    functions: list[str] = field(default_factory=list)


class ThreadStatements(c_family.Statements):
    """Write statements into one function that a thread runs."""

    def __init__(self, kernel: Kernel, names: c_family.Names, *, is_parallel: bool) -> None:
        super().__init__(kernel.helpers, names, kernel.facts)
        self.kernel = kernel
        self.is_parallel = is_parallel
        self.frame_bytes = 0

    def _prefetch(self, prefetch: loop.Prefetch) -> None:
        """The builtin of gcc and clang, if the buffer lies in memory."""
        storage = self.storage(prefetch.buffer)
        if isinstance(storage, c_family.Piece):
            offset = self.element_offset(prefetch.buffer, prefetch.indices)
            at, level = self.sum(offset._replace(step=0)), 4 - prefetch.level
            self.out.add(f"__builtin_prefetch(&{storage.pointer}[{at}], 0, {level});")

    def _allocate(self, allocate: loop.Allocate) -> None:
        """Registers if the buffer may live there, else memory of the call or the thread."""
        buffer = allocate.buffer
        width = analysis.tile_width(allocate, self.env, self.lanes, self.facts)
        self.out.add("{")
        self.out.depth += 1
        with self.kernel.workspace.statement():
            storage = self._piece(buffer) if width is None else self._tile(buffer, width)
            self.storages[buffer.name] = storage
            start = len(self.out.lines)
            self.statement(allocate.body)
            if isinstance(storage, c_family.Tile):
                self.out.lines[start:start] = self._declared(storage)
        self.out.depth -= 1
        self.out.add("}")

    def _tile(self, buffer: loop.Buffer, width: int) -> c_family.Tile:
        return c_family.Tile(buffer.name, buffer.dtype, width, self.lanes)

    def _declared(self, tile: c_family.Tile) -> list[str]:
        """The variables of a register tile, known once its statement is written."""
        lines, self.out.lines = self.out.lines, []
        kind = self.dialect.value(tile.dtype)
        if tile.width > 1:
            kind = self.helpers.vector(tile.dtype, tile.width)
        empty = "{0}" if tile.width > 1 else "0"
        for _, name in sorted(tile.variables.items()):
            self.out.add(f"{kind} {name} __attribute__((unused)) = {empty};")
        lines, self.out.lines = self.out.lines, lines
        return lines

    def _piece(self, buffer: loop.Buffer) -> c_family.Piece:
        """Memory for a buffer: of the call, on the stack, or of the thread."""
        size = self.lanes * analysis.element_count(buffer)
        count_bytes = size * buffer.dtype.size_bytes
        memory, offset = self.kernel.workspace.reserve(buffer, count_bytes, self.frame_bytes)
        name, kind = self.names.fresh(buffer.name), self.dialect.element(buffer.dtype)
        match memory:
            case analysis.MemoryKind.STACK:
                assert isinstance(count_bytes, int), "open sizes are not on the stack"
                self.frame_bytes += count_bytes
                aligned = f"__attribute__((aligned({analysis.BUFFER_ALIGN}), unused))"
                self.out.add(f"{kind} {name}[{maximum(size, 1)}] {aligned};")
            case analysis.MemoryKind.SHARED | analysis.MemoryKind.OWN:
                base = "workspace" if memory is analysis.MemoryKind.SHARED else "slice"
                at = self.sum(self.evaluate(offset))
                self.out.add(f"{kind} *restrict {name} = ({kind} *)({base} + {at});")
        return c_family.Piece(name, buffer.dtype, private=self.lanes)

    def _parallel(self, nest: loop.For, extent: analysis.Linear) -> None:
        """Write the body as a function of its own, and the call that shares out the iterations."""
        kernel = self.kernel
        captured, count = self._captured(nest.body), self.sum(extent)
        count = count if count.isalnum() else f"({count})"
        name = f"{kernel.name}_parallel_{len(kernel.functions)}"
        inner = ThreadStatements(kernel, self.names, is_parallel=True)
        inner.env, inner.ranges = dict(self.env), dict(self.ranges)
        inner.storages = {n: s for n, s in self.storages.items() if isinstance(s, c_family.Piece)}
        inner.serial(nest, "first", "stop", extent)
        parameters = "".join(f"{kind}{own}, " for own, kind in captured.items())
        kernel.functions.append(
            c_family.function_text(
                f"static void {name}({parameters}"
                "char *workspace, char *slice, int64_t first, int64_t stop)",
                (*captured, "workspace", "slice"),
                inner.out,
            )
        )
        passed = "".join(f"{own}, " for own in captured)
        add = self.out.lines.append
        add("#ifdef _OPENMP")
        with self.out.block("if (threads > 1)"):
            self.helpers.named("float_state", {"float_state": _FLOAT_STATE})
            self.out.add("const uint64_t floats = float_state();")
            add(f"#pragma omp parallel num_threads(threads < {count} ? threads : {count})")
            with self.out.block(""):
                self.out.add("const int64_t id = omp_get_thread_num();")
                self.out.add("const int64_t team = omp_get_num_threads();")
                self.out.add("const uint64_t own = float_state();")
                self.out.add("set_float_state(floats);")
                self.out.add(
                    f"{name}({passed}workspace, slice + id * {kernel.slice_bytes}, "
                    f"{count} * id / team, {count} * (id + 1) / team);"
                )
                self.out.add("set_float_state(own);")
        self.out.add("else")
        add("#endif")
        self.out.add(f"{name}({passed}workspace, slice, 0, {count});")

    def _captured(self, body: loop.Stmt) -> dict[str, str]:
        """The buffers and index values from outside that a body needs, with their types."""
        captured: dict[str, str] = {}
        for name in sorted(buffer.name for buffer in loop.buffers_used(body)):
            storage = self.storages.get(name)
            if isinstance(storage, c_family.Piece):
                captured[storage.pointer] = pointer_type(storage)
        for _, value in sorted(self.env.items()):
            if isinstance(value, analysis.Linear):
                captured |= {name: "int64_t " for name, _ in value.terms}
        return captured


def pointer_type(piece: c_family.Piece) -> str:
    """The type of the parameter that is a buffer."""
    const = "const " if piece.is_input else ""
    return f"{const}{C.element(piece.dtype)} *restrict "


def emit(program: loop.LoopProgram, target: CpuTarget) -> Source:
    """Write a program whose extents are ints, or expressions of named sizes; the target says how
    wide vectors are.

    Raises:  UnsupportedError for loops of graphics processors, and for functions of types that have
             none; InternalError for a program that is not well formed.
    """
    name = C.identifier(program.name)
    analysis.refuse_groups(program)
    names = c_family.Names(C.identifier)
    sizes = {size: names.fresh(size.name) for size in loop.sizes_of_program(program)}
    listed_sizes = ", ".join(sizes.values())
    slice_bytes = f"{name}_slice_bytes({listed_sizes})"
    kernel = Kernel(name, target, analysis.Facts(target, masked_rests=False), slice_bytes)
    main = ThreadStatements(kernel, names, is_parallel=False)
    for size, own in sizes.items():
        main.env[analysis.size_name(size)] = analysis.Linear(0, ((own, 1),))
        main.ranges[own] = (size.least, size.most or analysis.MOST_ITERATIONS)
    pointers: dict[str, str] = {}
    for parameter in program.parameters:
        buffer = parameter.buffer
        is_input = parameter.role is not loop.Role.OUTPUT
        piece = c_family.Piece(names.fresh(buffer.name), buffer.dtype, is_input)
        main.storages[buffer.name] = piece
        pointers[piece.pointer] = pointer_type(piece)
    main.statement(program.body)
    listed = "".join(f"{kind}{pointer}, " for pointer, kind in pointers.items())
    listed += "".join(f"int64_t {own}, " for own in sizes.values())
    arguments = "".join(f"args[{position}], " for position in range(len(pointers)))
    arguments += "".join(f"{own}, " for own in sizes.values())
    head = f"static void {name}_main({listed}char *workspace, char *slice, int threads)"
    parameters = (*pointers, *sizes.values(), "workspace", "slice", "threads")
    main_text = c_family.function_text(head, parameters, main.out, unused="threads")
    shared_bytes, own_bytes = kernel.workspace.shared.size, kernel.workspace.own.size
    own_text, shared_text = (main.sum(main.evaluate(each)) for each in (own_bytes, shared_bytes))
    entry = (
        f"void {name}(void **args, void *workspace, int threads);\n"
        f"void {name}(void **args, void *workspace, int threads) {{\n"
        f"{_read_sizes(sizes, len(pointers))}"
        f"    {name}_main({arguments}workspace, (char *)workspace + {shared_text}, threads);\n"
        "}\n"
    )
    own_entry = _slice_function(name, tuple(sizes.values()), own_text)
    is_asked = any(slice_bytes in each for each in (*kernel.functions, main_text))
    asked = (own_entry,) if is_asked else ()
    functions = "\n".join((*asked, *kernel.functions, main_text, entry))
    text = f"{C.head}{kernel.helpers.text()}\n{functions}"
    signature = Signature(
        name, program.parameters, shared_bytes, own_bytes, sizes=loop.size_arguments(program)
    )
    return Source(text, signature)


def _read_sizes(sizes: Mapping[NamedSize, str], position: int) -> str:
    """The named sizes from behind the addresses: each divided by its divisor."""
    lines = []
    for number, (size, own) in enumerate(sizes.items(), position):
        divided = f" / {size.divisor}" if size.divisor > 1 else ""
        lines.append(f"    const int64_t {own} = (int64_t)(intptr_t)args[{number}]{divided};\n")
    return "".join(lines)


def _slice_function(name: str, sizes: tuple[str, ...], own_bytes: str) -> str:
    """The function that gives the memory of each thread; a parallel loop calls it, if the compiler
    has OpenMP.
    """
    listed = ", ".join(f"int64_t {own}" for own in sizes) or "void"
    unused = "".join(f" (void){own};" for own in sizes)
    head = f"__attribute__((unused)) static inline int64_t {name}_slice_bytes({listed})"
    return f"{head} {{{unused} return {own_bytes}; }}\n"
