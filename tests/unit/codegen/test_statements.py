"""Loops, vectors, masks, branches, buffers and threads: machine code against the interpreter."""

from __future__ import annotations

import re
import subprocess
from tempfile import NamedTemporaryFile

import pytest
from tests.targets import AVX2, AVX512
from tests.unit.codegen.kernels import (
    F32,
    NATIVE,
    PARALLEL,
    SERIAL,
    TARGETS,
    UNROLLED,
    VECTOR,
    buffer,
    check,
    i,
    j,
    k,
    local,
    loops,
    m,
    n,
    product_of_bytes,
    program,
    run,
    sample,
)

from tensorwright.base import (
    SHORT_PRODUCTS,
    CpuTarget,
    DType,
    InternalError,
    ShortProduct,
    UnsupportedError,
    cpu_target,
)
from tensorwright.codegen.llvm import emit
from tensorwright.codegen.llvm.parallel import intrinsics_of
from tensorwright.expr import (
    Cast,
    Element,
    Fn,
    FromIndex,
    Index,
    Load,
    Var,
    all_of,
    apply,
    constant,
    floor_div,
    maximum,
    minimum,
    mod,
    select,
)
from tensorwright.loop import (
    Allocate,
    Buffer,
    For,
    If,
    LoopProgram,
    Prefetch,
    Stmt,
    Store,
    block,
    promote_accumulators,
)
from tensorwright.machine_code.compilation import assembly, compile_module
from tensorwright.schedule import ForKind, Scope

each_target = pytest.mark.parametrize("target", TARGETS, ids=str)


@each_target
@pytest.mark.parametrize("kind", [SERIAL, UNROLLED, VECTOR, PARALLEL])
@pytest.mark.parametrize("extent", [0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 40, 200])
def test_a_loop_of_any_kind_and_extent(target: CpuTarget, kind: ForKind, extent: int) -> None:
    x, y = buffer("x", 3, max(extent, 1)), buffer("y", 3, max(extent, 1))
    body = Store(y, (j, i), Load(x, (j, i)) * 2 + 1)
    source = program(loops((j, 3, SERIAL), (i, extent, kind), body=body), (x,), y)
    if extent:
        check(source, target)
    else:
        assert (run(source, {"x": sample((3, 1), F32, 0)}, target)["y"] == 77).all()


@each_target
@pytest.mark.parametrize(
    "dtype", [DType.F64, DType.I8, DType.U16, DType.I32, DType.I64, DType.BOOL]
)
@pytest.mark.parametrize("extent", [5, 64, 77])
def test_vectors_of_other_types(target: CpuTarget, dtype: DType, extent: int) -> None:
    x, y = buffer("x", extent, dtype=dtype), buffer("y", extent, dtype=dtype)
    body = loops((i, extent, VECTOR), body=Store(y, (i,), Load(x, (i,))))
    check(program(body, (x,), y), target)


@each_target
@pytest.mark.parametrize("extent", [8, 16, 21, 33])
@pytest.mark.parametrize("stride", [2, 3, -1])
def test_strided_loads_and_stores(target: CpuTarget, extent: int, stride: int) -> None:
    start = extent - 1 if stride < 0 else 0
    size = abs(stride) * (extent - 1) + 1
    x, y = buffer("x", size), buffer("y", size)
    z = buffer("z", extent)
    place = i * stride + start
    body = block(
        For(k, size, SERIAL, Store(y, (k,), constant(0, F32))),
        For(i, extent, VECTOR, Store(y, (place,), Load(x, (place,)) + 1)),
        For(i, extent, VECTOR, Store(z, (i,), Load(x, (place,)))),
    )
    check(program(body, (x,), y, z), target)
    if stride < 0 and target.has_masks:
        read = loops((i, extent, VECTOR), body=Store(z, (i,), Load(x, (place,))))
        assert "gather" not in emit(program(read, (x,), z), target).text


@each_target
@pytest.mark.parametrize("index_type", [DType.I32, DType.I64, DType.U8])
def test_gather_by_an_index_tensor(target: CpuTarget, index_type: DType) -> None:
    x, at, y = buffer("x", 20, 6), buffer("at", 11, dtype=index_type), buffer("y", 11, 6)
    row = Element(at, (i,))
    places = sample((11,), DType.U8, 1)
    for heads in (
        ((i, 11, SERIAL), (j, 6, VECTOR)),
        ((j, 6, SERIAL), (i, 11, VECTOR)),
        ((j, 6, UNROLLED), (i, 11, PARALLEL)),
    ):
        body = loops(*heads, body=Store(y, (i, j), Load(x, (row, j))))
        check(program(body, (x, at), y), target, arrays={"at": places.astype(index_type.numpy)})


@each_target
def test_scatter_under_a_mask(target: CpuTarget) -> None:
    x, y = buffer("x", 24), buffer("y", 40)
    body = block(
        For(k, 40, SERIAL, Store(y, (k,), constant(0, F32))),
        For(i, 24, VECTOR, If(mod(i, 3) < 2, Store(y, (floor_div(i * 5, 3),), Load(x, (i,))))),
    )
    check(program(body, (x,), y), target)


@each_target
@pytest.mark.parametrize("extent", [16, 19])
def test_conditions_that_differ_by_lane(target: CpuTarget, extent: int) -> None:
    x, y = buffer("x", 4, 13), buffer("y", 4, extent)
    inside = all_of(i + j >= 1, i + j < 13)
    padded = select(inside, Load(x, (j, i + j)), 0.5)
    body = loops((j, 4, SERIAL), (i, extent, VECTOR), body=Store(y, (j, i), padded))
    check(program(body, (x,), y), target)


@each_target
@pytest.mark.parametrize("kind", [SERIAL, VECTOR, UNROLLED])
def test_padding_never_reads_outside(target: CpuTarget, kind: ForKind) -> None:
    """A 2-D halo around the input, whose rows and columns are out of bounds."""
    x, y = buffer("x", 2, 5, 16), buffer("y", 2, 9, 20)
    h, w = j - 2, i - 2
    valid = all_of(h >= 0, h < 5, w >= 0, w < 16)
    value = select(valid, Load(x, (k, h, w)), 0.0)
    body = loops((k, 2, SERIAL), (j, 9, SERIAL), (i, 20, kind), body=Store(y, (k, j, i), value))
    check(program(body, (x,), y), target)


@each_target
def test_lanes_that_are_read_backwards_under_a_guard_are_masked(target: CpuTarget) -> None:
    """x[4 - i] for i < 5: loading all lanes at once would begin 11 elements before x."""
    x, y = buffer("x", 5), buffer("y", 16)
    value = select(i < 5, Load(x, (4 - i,)), 0.0)
    nest = program(loops((i, 16, VECTOR), body=Store(y, (i,), value)), (x,), y)
    check(nest, target)
    assert not re.search(r"load <\d+ x float>", emit(nest, target).text)


@each_target
def test_a_select_with_a_scalar_condition_in_a_vector_loop(target: CpuTarget) -> None:
    x, z, y = buffer("x", 5, 24), buffer("z", 4, 24), buffer("y", 9, 24)
    heavy = apply(Fn.EXP, Load(x, (j, i)))
    for value in (
        select(j < 5, Load(x, (j, i)), Load(z, (j - 5, i))),
        select(j < 5, heavy, Load(z, (j - 5, i))),
        select(j < 5, Load(x, (j, 0)), 3.0),
    ):
        body = loops((j, 9, SERIAL), (i, 24, VECTOR), body=Store(y, (j, i), value))
        check(program(body, (x, z), y), target)


@each_target
@pytest.mark.parametrize("extent", [9, 32])
def test_if_guards(target: CpuTarget, extent: int) -> None:
    x, y = buffer("x", 30), buffer("y", 4, extent)
    fill = loops((j, 4, SERIAL), (i, extent, VECTOR), body=Store(y, (j, i), constant(0, F32)))
    guarded = If(i * 2 + j < 30, Store(y, (j, i), Load(x, (i * 2 + j,))))
    scalar = If(j * 3 < 7, guarded)
    body = block(fill, loops((j, 4, SERIAL), (i, extent, VECTOR), body=scalar))
    check(program(body, (x,), y), target)


@each_target
@pytest.mark.parametrize("extent", [16, 27, 5])
def test_a_reduction_inside_a_vector_loop(target: CpuTarget, extent: int) -> None:
    """A local scalar inside the vector loop has a lane dimension."""
    x, y, total = buffer("x", 7, extent), buffer("y", extent), local("total")
    here = Load(total, ())
    body = Allocate(
        total,
        block(
            Store(total, (), constant(0, F32)),
            For(k, 7, SERIAL, Store(total, (), here + Load(x, (k, i)))),
            Store(y, (i,), here * 2),
        ),
    )
    check(program(For(i, extent, VECTOR, body), (x,), y), target)


@each_target
def test_a_private_array_indexed_by_a_serial_loop(target: CpuTarget) -> None:
    x, y, tmp = buffer("x", 6, 20), buffer("y", 6, 20), local("tmp", 6)
    body = Allocate(
        tmp,
        block(
            For(k, 6, SERIAL, Store(tmp, (k,), Load(x, (k, i)) + FromIndex(k, F32))),
            For(k, 6, SERIAL, Store(y, (k, i), Load(tmp, (5 - k,)))),
        ),
    )
    check(program(For(i, 20, VECTOR, body), (x,), y), target)


@each_target
def test_nested_vector_loops(target: CpuTarget) -> None:
    x, y = buffer("x", 3, 20), buffer("y", 20, 3)
    body = loops((j, 3, VECTOR), (i, 20, VECTOR), body=Store(y, (i, j), Load(x, (j, i))))
    check(program(body, (x,), y), target)


@each_target
def test_a_stored_value_is_seen_by_later_loads(target: CpuTarget) -> None:
    x, y, z = buffer("x", 24), buffer("y", 24), buffer("z", 24)
    shift = Load(y, (23 - i,))
    body = block(
        For(i, 24, VECTOR, Store(y, (i,), Load(x, (i,)))),
        For(i, 24, VECTOR, Store(z, (i,), shift)),
        For(i, 24, VECTOR, Store(y, (i,), Load(x, (i,)) * 3)),
        For(i, 24, VECTOR, Store(z, (i,), Load(z, (i,)) + shift)),
    )
    check(program(body, (x,), y, z), target)


@each_target
def test_a_running_sum_in_memory(target: CpuTarget) -> None:
    """Each iteration loads what the one before stored: nothing may leave the loop."""
    x, y = buffer("x", 9), buffer("y", 9)
    step = Store(y, (i,), Load(y, (i - 1,)) + Load(x, (i,)))
    body = block(
        Store(y, (0,), Load(x, (0,))),
        For(i, 9, SERIAL, If(i >= 1, step)),
        For(i, 3, SERIAL, Store(y, (8,), Load(y, (8,)) * 2)),
    )
    check(program(body, (x,), y), target)


def matmul_tile(rows: int, columns: int, depth: int, size: int) -> LoopProgram:
    """A rows x columns tile in registers over a (depth, size) operand."""
    a, b = buffer("a", depth, rows), buffer("b", depth, size)
    c, acc = buffer("c", rows, size), local("acc", rows, columns)
    here = Load(acc, (i, j))

    def tile(body: Stmt) -> Stmt:
        return loops((i, rows, UNROLLED), (j, columns, VECTOR), body=body)

    product = Load(a, (k, i)) * Load(b, (k, n * columns + j))
    body = block(
        tile(Store(acc, (i, j), constant(0, F32))),
        For(k, depth, SERIAL, tile(Store(acc, (i, j), here + product))),
        tile(Store(c, (i, n * columns + j), here)),
    )
    return program(For(n, size // columns, SERIAL, Allocate(acc, body)), (a, b), c)


@each_target
@pytest.mark.parametrize("columns", [16, 32, 24, 20, 8])
def test_a_register_tile(target: CpuTarget, columns: int) -> None:
    check(matmul_tile(4, columns, 5, 2 * columns), target, tolerance=1e-4)


@pytest.mark.parametrize("target", [AVX512, AVX2], ids=str)
def test_a_register_tile_stays_in_registers(target: CpuTarget) -> None:
    """The inner loop of a 4x2-vector tile: 8 FMAs, no spill, no access to the stack."""
    lanes = target.lanes(F32)
    kernel = emit(matmul_tile(4, 2 * lanes, 64, 4 * lanes), target)
    text = assembly(kernel.text, target)
    assert "alloca" in kernel.text
    blocks = re.split(r"^\.L\w+:", text, flags=re.MULTILINE)
    inner = [part.split("j", 1)[0] for part in blocks if part.count("vfmadd") == 8]
    assert len(inner) == 1
    assert "sp)" not in inner[0]
    assert "vmovups\t%" not in inner[0]
    assert "vmovaps\t%" not in inner[0]


@each_target
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("extent", [1, 2, 5, 16])
def test_parallel_loops(target: CpuTarget, threads: int, extent: int) -> None:
    x, y = buffer("x", 3, extent, 20), buffer("y", 3, extent, 20)
    tmp, big = local("tmp", 20), local("big", 16384)
    body = Allocate(
        big,
        Allocate(
            tmp,
            block(
                For(i, 20, VECTOR, Store(tmp, (i,), Load(x, (k, j, i)) * 3)),
                For(i, 20, SERIAL, Store(big, (i * 700,), Load(tmp, (19 - i,)))),
                For(i, 20, SERIAL, Store(y, (k, j, i), Load(big, (i * 700,)))),
            ),
        ),
    )
    nest = loops((k, 3, SERIAL), (j, extent, PARALLEL), body=body)
    source = program(nest, (x,), y)
    assert emit(source, target).signature.local_workspace_bytes == 65536
    check(source, target, threads)


@pytest.mark.parametrize("threads", [1, 2])
def test_buffers_of_the_call(threads: int) -> None:
    """Global buffers are shared by the threads; siblings take turns in one place."""
    x, y = buffer("x", 8, 16), buffer("y", 8, 16)
    first, second = buffer("first", 8, 16), buffer("second", 8, 16)
    rows = (j, 8, PARALLEL), (i, 16, VECTOR)
    body = block(
        Allocate(
            first,
            block(
                loops(*rows, body=Store(first, (j, i), Load(x, (j, i)) + 1)),
                loops(*rows, body=Store(y, (j, i), Load(first, (7 - j, i)))),
            ),
        ),
        Allocate(
            second,
            block(
                loops(*rows, body=Store(second, (j, i), Load(y, (j, i)) * 2)),
                loops(*rows, body=Store(y, (j, i), Load(second, (7 - j, i)))),
            ),
        ),
    )
    source = program(body, (x,), y)
    assert emit(source, NATIVE).signature.workspace_bytes == 8 * 16 * 4
    check(source, threads=threads)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_parallel_loop_inside_another(threads: int) -> None:
    x, y = buffer("x", 4, 6, 16), buffer("y", 4, 6, 16)
    body = loops(
        (k, 4, PARALLEL),
        (j, 6, PARALLEL),
        (i, 16, VECTOR),
        body=Store(y, (k, j, i), Load(x, (k, j, i)) + 1),
    )
    check(program(body, (x,), y), threads=threads)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_local_buffer_around_a_parallel_loop(threads: int) -> None:
    x, y, row = buffer("x", 4, 16), buffer("y", 4, 16), local("row", 16)
    body = For(
        k,
        4,
        SERIAL,
        Allocate(
            row,
            block(
                For(i, 16, VECTOR, Store(row, (i,), Load(x, (k, i)))),
                loops((j, 16, PARALLEL), body=Store(y, (k, j), Load(row, (15 - j,)))),
            ),
        ),
    )
    check(program(body, (x,), y), threads=threads)


@each_target
def test_indices_with_division_and_minimum(target: CpuTarget) -> None:
    x, y = buffer("x", 6, 8), buffer("y", 48)
    for row, column in (
        (floor_div(i, 8), mod(i, 8)),
        (floor_div(i, 7) - floor_div(i, 42), mod(i * 3, 7)),
        (minimum(floor_div(i, 5), 5), maximum(mod(i, 11) - 4, 0)),
        (floor_div(i - 48, 8) + 6, mod(i - 48, 7)),
    ):
        for kind in (SERIAL, VECTOR, UNROLLED):
            check(
                program(For(i, 48, kind, Store(y, (i,), Load(x, (row, column)))), (x,), y), target
            )


@each_target
@pytest.mark.parametrize("dtype", [DType.F32, DType.F64, DType.I64, DType.I8])
def test_indices_as_numbers(target: CpuTarget, dtype: DType) -> None:
    y = buffer("y", 5, 21, dtype=dtype)
    body = loops(
        (j, 5, SERIAL), (i, 21, VECTOR), body=Store(y, (j, i), FromIndex(i * j - 3, dtype))
    )
    check(program(body, (), y), target)


def test_prefetch_means_nothing() -> None:
    x, y = buffer("x", 32), buffer("y", 32)
    body = block(Prefetch(x, (i + 64,)), Store(y, (i,), Load(x, (i,))))
    check(program(For(i, 32, SERIAL, body), (x,), y))


@pytest.mark.parametrize(
    "product", [p for p in SHORT_PRODUCTS if p.rows == 1], ids=lambda product: product.intrinsic
)
@pytest.mark.parametrize("target", [*TARGETS, NATIVE], ids=str)
@pytest.mark.parametrize("is_tile", [False, True])
def test_the_dot_product_intrinsic(target: CpuTarget, product: ShortProduct, is_tile: bool) -> None:
    source = product_of_bytes(product, is_tile=is_tile)
    text = emit(source, target).text
    is_there = product.intrinsic in intrinsics_of(target)
    assert any(name in text for name in ("vpdp", "vdpbf16ps", "pmadd", "neon.")) == is_there
    data = (sample((9, product.terms), product.data, 1) * 12).astype(product.data.numpy)
    check(source, target, arrays={"data": data})


@pytest.mark.parametrize(
    ("name", "number", "instruction"),
    [
        ("x86-64-avx512+avx512vnni", 0, r"vpdpbusd .*%zmm"),
        ("x86-64-avx512+avx512vnni", 5, r"vpdpwssd .*%zmm"),
        ("x86-64-avx512+avx512vnni", 8, r" vpdpbusd .*%ymm"),
        ("x86-64-avx2+avxvnni", 9, r"\{vex\} vpdpbusd .*%ymm"),
        ("x86-64-avx512+avx512bf16", 10, r"vdpbf16ps .*%zmm"),
    ],
)
def test_x86_has_them_as_instructions(name: str, number: int, instruction: str) -> None:
    """The code is assembled, and what a disassembler reads of it is the instruction."""
    source = product_of_bytes(SHORT_PRODUCTS[number], is_tile=True)
    target = cpu_target(name)
    assert re.search(instruction, disassembled(compile_module(emit(source, target).text, target)))
    assert not re.search(instruction, disassembled(compile_module(emit(source, AVX2).text, AVX2)))


def disassembled(code: bytes) -> str:
    with NamedTemporaryFile(suffix=".o") as file:
        file.write(code)
        file.flush()
        command = ["objdump", "-d", "--no-show-raw-insn", file.name]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.sub(r"[ \t]+", " ", listed)


def test_loops_of_graphics_processors_are_refused() -> None:
    y = buffer("y", 4)
    body = For(i, 4, ForKind.BLOCK_X, Store(y, (i,), constant(0, F32)))
    with pytest.raises(UnsupportedError, match=r"@block\.x is for graphics processors"):
        emit(program(body, (), y), AVX512)


@each_target
@pytest.mark.parametrize("extent", [4, 13, 16, 40])
@pytest.mark.parametrize("fn", [Fn.ADD, Fn.MUL, Fn.MAX, Fn.MIN])
def test_a_reduction_over_lanes_folds_them(target: CpuTarget, extent: int, fn: Fn) -> None:
    x, y = buffer("x", 3, extent), buffer("y", 3)
    fold = Store(y, (j,), apply(fn, Load(y, (j,)), Load(x, (j, i))))
    start = Store(y, (j,), constant(1.5, F32))
    body = For(j, 3, SERIAL, block(start, For(i, extent, VECTOR, fold)))
    check(program(body, (x,), y), target)


@each_target
def test_a_guarded_reduction_over_lanes_folds_some(target: CpuTarget) -> None:
    x, y = buffer("x", 20), buffer("y", 1)
    fold = If(i * 2 < 25, Store(y, (0,), Load(y, (0,)) + Load(x, (i,))))
    body = block(Store(y, (0,), constant(2, F32)), For(i, 20, VECTOR, fold))
    check(program(body, (x,), y), target)


def test_a_reduction_of_integers_over_lanes_is_refused() -> None:
    x, y = buffer("x", 16, dtype=DType.I32), buffer("y", 1, dtype=DType.I32)
    body = For(i, 16, VECTOR, Store(y, (0,), Load(y, (0,)) + Load(x, (i,))))
    with pytest.raises(InternalError, match="a vector loop carries a reduction"):
        emit(program(body, (x,), y), AVX512)


@each_target
@pytest.mark.parametrize("dtype", [DType.F32, DType.F64])
def test_a_copy_in_the_other_order_is_turned_in_registers(target: CpuTarget, dtype: DType) -> None:
    lanes = target.vector_bytes // dtype.size_bytes
    x = buffer("x", 2, 3 * lanes, 5, 2 * lanes, dtype=dtype)
    y = buffer("y", 2, 5, 2 * lanes, 3 * lanes, dtype=dtype)
    copy = Store(y, (j, k, m, n * lanes + i), Load(x, (j, n * lanes + i, k, m)))
    nest: Stmt = For(m, 2 * lanes, SERIAL, For(i, lanes, VECTOR, copy))
    for var, extent in ((n, 3), (k, 5), (j, 2)):
        nest = For(var, extent, SERIAL, nest)
    written = program(nest, (x,), y)
    check(written, target)
    if lanes > 2:  # vectors of two are gathered
        assert "gather" not in emit(written, target).text
        assert emit(written, target).text.count("shufflevector") >= lanes


@each_target
def test_rows_of_few_channels_are_one_run(target: CpuTarget) -> None:
    x, y = buffer("x", 5, 20, 3), buffer("y", 7, 22, 3)
    channel, column = mod(i, 3), floor_div(i, 3)
    inside = all_of(j >= 1, j < 6, column >= 1, column < 21)
    value = select(inside, Load(x, (j - 1, column - 1, channel)), 0.0)
    body = For(j, 7, SERIAL, For(i, 66, VECTOR, Store(y, (j, column, channel), value)))
    written = program(body, (x,), y)
    check(written, target)
    text = emit(written, target).text
    assert "gather" not in text
    assert "scatter" not in text


def test_an_unbound_extent_is_refused() -> None:
    y = buffer("y", 4)
    with pytest.raises(InternalError, match="no loop defines it"):
        emit(program(For(i, j, SERIAL, Store(y, (0,), constant(0, F32))), (), y), AVX512)


def test_lanes_that_write_one_value_to_one_place() -> None:
    x, y = buffer("x", 16), buffer("y", 1)
    value = Load(x, (i,)) * 0 + 3  # differs by lane as far as anyone can see
    body = For(i, 16, VECTOR, Store(y, (0,), value))
    assert run(program(body, (x,), y), {"x": sample((16,), F32, 0)})["y"][0] == 3


def test_scopes_of_locals_named_alike() -> None:
    """An unrolled loop allocates a buffer per copy; nothing is carried from one to the next."""
    x, y, t = buffer("x", 3, 16), buffer("y", 3, 16), local("t", 16)
    inner = Allocate(
        t,
        block(
            For(i, 16, VECTOR, Store(t, (i,), Load(x, (j, i)))),
            For(i, 16, VECTOR, Store(y, (j, i), Load(t, (i,)) * 2)),
        ),
    )
    check(program(For(j, 3, UNROLLED, inner), (x,), y))


@pytest.mark.parametrize(
    ("name", "symbol"),
    [("conv 3x3/a", "conv_3x3_a"), ("3x3", "kernel_3x3"), ("sinf", "sinf_kernel"), ("é", "_")],
)
def test_names_are_made_safe(name: str, symbol: str) -> None:
    y = buffer("y", 4)
    source = program(For(i, 4, VECTOR, Store(y, (i,), constant(1, F32))), (), y)
    source = LoopProgram(name, source.parameters, source.body)
    assert emit(source, NATIVE).signature.symbol == symbol
    check(source)


def test_unrolling_has_an_end() -> None:
    y = buffer("y", 100, 100)
    body = loops((j, 100, UNROLLED), (i, 100, UNROLLED), body=Store(y, (j, i), constant(1, F32)))
    source = program(body, (), y)
    assert emit(source, NATIVE).text.count("store float") == 100
    check(source)


def test_a_workspace_beyond_the_stack() -> None:
    x, y = buffer("x", 8), buffer("y", 8)
    big = Buffer("big", (40000,), F32, Scope.LOCAL)
    body = Allocate(
        big,
        block(
            For(i, 8, SERIAL, Store(big, (i * 4999,), Load(x, (i,)))),
            For(i, 8, SERIAL, Store(y, (i,), Load(big, ((7 - i) * 4999,)))),
        ),
    )
    source = program(body, (x,), y)
    assert emit(source, NATIVE).signature.local_workspace_bytes == 160000
    check(source)


def test_cast_of_a_gathered_value() -> None:
    x, y = buffer("x", 40, dtype=DType.I32), buffer("y", 20)
    body = For(i, 20, VECTOR, Store(y, (i,), Cast(Load(x, (i * 2,)), F32)))
    check(program(body, (x,), y))


def stack_is_used(source: LoopProgram, target: CpuTarget) -> bool:
    """Whether the machine code holds anything but register saves on the stack."""
    text = assembly(emit(source, target).text, target)
    return re.search(r"-?\d*\(%rsp|\(%rbp", text) is not None


@each_target
def test_serial_loops_over_a_tile_are_unrolled(target: CpuTarget) -> None:
    """Zeroing and storing a tile in plain loops does not push it out of the registers."""
    lanes = target.lanes(F32)
    a, b = buffer("a", 20, 4), buffer("b", 20, lanes)
    c, acc = buffer("c", 4, lanes), local("acc", 4, lanes)
    here = Load(acc, (i, j))
    product = Load(a, (k, i)) * Load(b, (k, j))
    rows, columns = (i, 4, SERIAL), (j, lanes, VECTOR)
    body = block(
        loops(rows, columns, body=Store(acc, (i, j), constant(0, F32))),
        loops((k, 20, SERIAL), (i, 4, UNROLLED), columns, body=Store(acc, (i, j), here + product)),
        loops(rows, columns, body=Store(c, (i, j), here)),
    )
    source = program(Allocate(acc, body), (a, b), c)
    assert not stack_is_used(source, target)
    check(source, target, tolerance=1e-4)


@each_target
def test_lanes_of_a_tile_are_added_up(target: CpuTarget) -> None:
    """A reduction split over lanes: vectors in the loop, single elements after it."""
    lanes = target.lanes(F32)
    x, y, part = buffer("x", 3, 9, lanes), buffer("y", 3), local("part", lanes)
    total = local("total")
    body = block(
        For(j, lanes, VECTOR, Store(part, (j,), constant(0, F32))),
        loops(
            (k, 9, SERIAL),
            (j, lanes, VECTOR),
            body=Store(part, (j,), Load(part, (j,)) + Load(x, (i, k, j))),
        ),
        Store(total, (), constant(0, F32)),
        For(j, lanes, SERIAL, Store(total, (), Load(total, ()) + Load(part, (j,)))),
        Store(part, (3,), Load(total, ())),
        Store(y, (i,), Load(part, (3,)) * 2),
    )
    source = program(For(i, 3, SERIAL, Allocate(total, Allocate(part, body))), (x,), y)
    assert not stack_is_used(source, target)
    check(source, target, tolerance=1e-4)


@each_target
def test_vectors_side_by_side_around_a_loop(target: CpuTarget) -> None:
    lanes = target.lanes(F32)
    x, y, total = buffer("x", 30, 4 * lanes), buffer("y", 4 * lanes), local("total")
    body = block(
        Store(total, (), constant(0, F32)),
        For(k, 30, SERIAL, Store(total, (), Load(total, ()) + Load(x, (k, i)))),
        Store(y, (i,), Load(total, ())),
    )
    source = program(For(i, 4 * lanes, VECTOR, Allocate(total, body)), (x,), y)
    assert emit(source, target).text.count("phi") == 1
    assert not stack_is_used(source, target)
    check(source, target, tolerance=1e-4)


@each_target
def test_a_tile_moved_by_a_vector_loop_that_stays_a_loop(target: CpuTarget) -> None:
    """The name i is a serial loop's here and a long vector loop's there."""
    x, y, t = buffer("x", 512), buffer("y", 512), local("t", 512)
    body = block(
        For(i, 512, VECTOR, Store(t, (i,), Load(x, (i,)))),
        For(i, 3, SERIAL, Store(t, (i,), constant(2, F32))),
        For(i, 512, VECTOR, Store(y, (i,), Load(t, (i,)))),
    )
    check(program(Allocate(t, body), (x,), y), target)


def added_up(heads: tuple[tuple[Var, int, ForKind], ...], place: tuple[Index, ...]) -> LoopProgram:
    """y[place] = 1, then y[place] += x[...] over all loops, in memory."""
    x, y = buffer("x", 6, 5, 40), buffer("y", 20, 50)
    body = Store(y, place, Load(y, place) + Load(x, (k, i, j)))
    clear = loops((m, 20, SERIAL), (n, 50, VECTOR), body=Store(y, (m, n), constant(1, F32)))
    return program(block(clear, loops(*heads, body=body)), (x,), y)


@each_target
@pytest.mark.parametrize(
    ("heads", "place", "is_kept"),
    [
        (((k, 6, SERIAL), (i, 3, UNROLLED), (j, 40, VECTOR)), (i + 3, j), True),
        (((k, 6, SERIAL), (i, 3, UNROLLED), (j, 40, VECTOR)), (i * 2, j + 1), True),
        (((i, 5, SERIAL), (k, 6, SERIAL), (j, 40, VECTOR)), (i, j), True),
        (((j, 40, SERIAL), (i, 5, SERIAL), (k, 6, SERIAL)), (1, 2), True),
        (((j, 40, SERIAL), (k, 6, SERIAL), (i, 5, UNROLLED)), (1, floor_div(i, 2)), False),
        (((k, 6, SERIAL), (i, 5, UNROLLED), (j, 40, SERIAL)), (1, i + j), False),
        (((k, 6, SERIAL), (j, 40, UNROLLED), (i, 5, UNROLLED)), (1, i + j), False),
        (((j, 40, VECTOR), (k, 6, SERIAL), (i, 5, UNROLLED)), (i, j), True),
        (((i, 5, SERIAL), (k, 6, UNROLLED), (j, 40, VECTOR)), (i, j), True),
        (((k, 1, UNROLLED), (i, 3, UNROLLED), (j, 40, VECTOR)), (i, j), False),
    ],
)
def test_accumulators_in_memory_are_kept_in_registers(
    target: CpuTarget,
    heads: tuple[tuple[Var, int, ForKind], ...],
    place: tuple[Index, ...],
    is_kept: bool,
) -> None:
    source = added_up(heads, place)
    promoted = promote_accumulators(source, target)
    assert ("y.kept" in str(promoted)) is is_kept
    check(promoted, target, tolerance=1e-4)


@each_target
def test_an_accumulator_is_kept_in_registers_beside_a_prefetch(target: CpuTarget) -> None:
    x, y = buffer("x", 6, 4, 40), buffer("y", 40)
    ask = For(m, 2, UNROLLED, Prefetch(x, (k + 1, m, 0)))
    update = Store(y, (i,), Load(y, (i,)) + Load(x, (k, j, i)))
    fold = For(k, 6, SERIAL, block(ask, loops((j, 4, UNROLLED), (i, 40, VECTOR), body=update)))
    source = program(block(For(i, 40, VECTOR, Store(y, (i,), constant(1, F32))), fold), (x,), y)
    promoted = promote_accumulators(source, target)
    inside = (
        str(promoted).partition("for k in")[2].partition("for i in 0..40  @vectorize:\n    y[")[0]
    )
    assert "prefetch x[k + 1, m, 0]" in inside
    assert "y.kept[i] += x[k, j, i]" in inside
    assert "y[i]" not in inside
    check(promoted, target, tolerance=1e-4)


def test_an_accumulator_that_an_index_reads_stays_in_memory() -> None:
    y, at = buffer("y", 4), buffer("at", 4, dtype=DType.I32)
    update = Load(at, (0,)) + FromIndex(Element(at, (0,)) + k, DType.I32)
    body = block(
        For(i, 4, SERIAL, Store(at, (i,), constant(0, DType.I32))),
        For(k, 3, SERIAL, Store(at, (0,), update)),
        For(i, 4, SERIAL, Store(y, (i,), Cast(Load(at, (0,)), F32))),
    )
    check(program(Allocate(at, body), (), y))


@each_target
def test_guards_around_an_accumulator_stay(target: CpuTarget) -> None:
    x, y = buffer("x", 6, 19), buffer("y", 19)
    update = Store(y, (i,), Load(y, (i,)) + Load(x, (k, i)))
    for heads in (
        lambda body: For(k, 6, SERIAL, For(i, 32, VECTOR, If(i < 19, body))),
        lambda body: For(k, 6, SERIAL, If(k < 5, For(i, 19, VECTOR, body))),
    ):
        clear = For(i, 19, VECTOR, Store(y, (i,), constant(0, F32)))
        check(program(block(clear, heads(update)), (x,), y), target, tolerance=1e-4)


@each_target
@pytest.mark.parametrize("dtype", [F32, DType.F64, DType.I32, DType.I64, DType.I8, DType.BOOL])
def test_one_element_or_a_constant(target: CpuTarget, dtype: DType) -> None:
    """A guarded scalar load, spread over the lanes of a vector loop or alone."""
    x, y = buffer("x", 3, 5, dtype=dtype), buffer("y", 9, 20, dtype=dtype)
    for other in (0, 1):
        guarded = select(all_of(j >= 2, j < 7), Load(x, (2, j - 2)), constant(other, dtype))
        for kind in (VECTOR, SERIAL):
            body = loops((j, 9, SERIAL), (i, 20, kind), body=Store(y, (j, i), guarded))
            check(program(body, (x,), y), target)


@pytest.mark.parametrize("name", ["x86-64-sse2", "aarch64-neon"])
def test_targets_without_masks_or_wide_vectors(name: str) -> None:
    """SSE2 runs on every x86-64; other processors' code is only compiled."""
    target = cpu_target(name)
    x, y = buffer("x", 4, 13), buffer("y", 4, 19)
    padded = select(all_of(i + j >= 1, i + j < 13), apply(Fn.TANH, Load(x, (j, i + j))), 0.5)
    body = loops((j, 4, PARALLEL), (i, 19, VECTOR), body=Store(y, (j, i), padded))
    for source in (program(body, (x,), y), matmul_tile(4, 12, 5, 24)):
        assert assembly(emit(source, target).text, target)
        if target.arch == NATIVE.arch:
            check(source, target, tolerance=1e-4)
