"""What the texts for graphics processors must do: compute what the interpreter computes.

OpenCL's runs by PoCL, CUDA's on the processor (`tests/grids.py`); each test is one program with
many stores, because a compiler takes a second.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from tests import grids
from tests.conformance.test_backends import (
    BINARY_SAFE,
    INTEGERS,
    ON_BITS,
    ON_BOOLS,
    ON_FLOATS,
    ON_POSITIVE,
    ON_REALS,
    OPERATORS,
    SIZE,
    UNARY,
    numbers,
    operator_graph,
)
from tests.unit.codegen.kernels import (
    F32,
    SERIAL,
    UNROLLED,
    VECTOR,
    buffer,
    i,
    j,
    k,
    local,
    loops,
    m,
    n,
    program,
    sample,
)
from tests.unit.schedule.expressions import Expression, matmul
from tests.unit.schedule.test_random_traces import schedules
from tests.unit.tuning.space.row_programs import softmax

from tensorwright import expr, graph, loop
from tensorwright.artifacts import loop_program
from tensorwright.base import DType, GpuTarget, UnsupportedError
from tensorwright.codegen import Backend
from tensorwright.codegen.c_family import Dialect
from tensorwright.codegen.cuda import CUDA, find_nvrtc
from tensorwright.codegen.opencl import OPENCL as OPENCL_C
from tensorwright.graph import partition
from tensorwright.schedule import ForKind, Scope, Trace, parse_trace, replay, state_of
from tensorwright.tuning.space import default_trace
from tensorwright_lab.cards import SMALL_TILES, product_tiles
from tensorwright_lab.cards import product as product_of
from tensorwright_lab.loop_interpreter import interpret

BLOCK_X, BLOCK_Y = ForKind.BLOCK_X, ForKind.BLOCK_Y
THREAD_X, THREAD_Y = ForKind.THREAD_X, ForKind.THREAD_Y


machine = pytest.fixture(params=grids.EACH_MACHINE)(grids.machine_of)


def check(
    machine: grids.Machine,
    source: loop.LoopProgram,
    arrays: dict[str, np.ndarray],
    tolerance: float = 2e-5,
) -> None:
    """Compare with the interpreter."""
    loop.verify(source)
    with np.errstate(all="ignore"):
        wanted = interpret(source, arrays)
    results = machine.run(source, arrays)
    for name, want in wanted.items():
        got = results[name]
        assert got.dtype == want.dtype
        if want.dtype.kind in "iub":
            np.testing.assert_array_equal(got, want, err_msg=name)
        else:
            got, want = (each.astype(np.float64) for each in (got, want))
            np.testing.assert_allclose(got, want, tolerance, tolerance, err_msg=name)


def of_groups(groups: dict[DType, tuple[expr.Fn, ...]], kind: ForKind) -> loop.LoopProgram:
    """A row of an output for each function; inputs x_TYPE_0 and x_TYPE_1 of each type."""
    inputs: list[loop.Buffer] = []
    outputs: list[loop.Buffer] = []
    stores: list[loop.Stmt] = []
    for dtype, functions in groups.items():
        pair = [buffer(f"x_{dtype}_{number}", SIZE, dtype=dtype) for number in range(2)]
        inputs += pair
        loads = [expr.Load(each, (i,)) for each in pair]
        values = [expr.apply(fn, *loads[: fn.arity]) for fn in functions]
        for result in dict.fromkeys(value.dtype for value in values):
            rows = [value for value in values if value.dtype is result]
            output = buffer(f"y_{dtype}_{result}", len(rows), SIZE, dtype=result)
            outputs.append(output)
            stores += [loop.Store(output, (row, i), value) for row, value in enumerate(rows)]
    return program(loop.For(i, SIZE, kind, loop.block(*stores)), tuple(inputs), *outputs)


def drawn(source: loop.LoopProgram) -> dict[str, np.ndarray]:
    """Positive numbers for inputs; signed ones for the first of the integers."""
    return {
        each.name: numbers(each.buffer.dtype, number, positive=not each.name.endswith("_0"))
        for number, each in enumerate(source.parameters)
        if each.role is loop.Role.INPUT
    }


@pytest.mark.parametrize("kind", [THREAD_X, VECTOR])
def test_functions_of_floats(machine: grids.Machine, kind: ForKind) -> None:
    signed, positive = BINARY_SAFE + UNARY + ON_REALS, ON_FLOATS + ON_POSITIVE
    check(machine, source := of_groups({F32: signed}, kind), drawn(source), 2e-6)
    arrays = {f"x_f32_{seed}": numbers(F32, seed, positive=True) for seed in range(2)}
    check(machine, of_groups({F32: positive}, kind), arrays, 2e-6)


def test_functions_of_other_types(machine: grids.Machine) -> None:
    halves = (*BINARY_SAFE, expr.Fn.NEG, expr.Fn.EXP, expr.Fn.SIGMOID, expr.Fn.DIV)
    source = of_groups({DType.F16: halves, DType.BF16: halves}, THREAD_X)
    check(machine, source, drawn(source), 2e-2)
    functions = (*BINARY_SAFE, *UNARY, *ON_BITS, expr.Fn.BITNOT)
    groups = dict.fromkeys(INTEGERS, functions) | {DType.BOOL: (*ON_BOOLS, expr.Fn.NOT)}
    source = of_groups(groups, THREAD_X)
    check(machine, source, drawn(source))


def test_vectors_of_short_types(machine: grids.Machine) -> None:
    """Elements that are computed in another form are moved together, too."""
    stores: list[loop.Stmt] = []
    inputs: list[loop.Buffer] = []
    outputs: list[loop.Buffer] = []
    for dtype in (DType.F16, DType.BF16, DType.BOOL, DType.I8):
        inputs.append(buffer(f"x_{dtype}", 8, 16, dtype=dtype))
        outputs.append(buffer(f"y_{dtype}", 8, 16, dtype=dtype))
        value = expr.Load(inputs[-1], (k, i))
        value = (
            expr.apply(expr.Fn.NOT, value)
            if dtype is DType.BOOL
            else expr.apply(expr.Fn.ADD, value, value)
        )
        stores.append(loop.Store(outputs[-1], (k, i), value))
    body = loops((k, 8, THREAD_X), (i, 16, VECTOR), body=loop.block(*stores))
    arrays = {x.name: sample((8, 16), x.dtype, 1) for x in inputs}
    source = program(body, tuple(inputs), *outputs)
    check(machine, source, arrays, 1e-2)
    text = grids.CUDA_BACKEND.emit(source, grids.SM_80).text
    assert text.count("*(const ushort4 *)&x_f16[") == 4
    assert text.count("*(ushort4 *)&y_bf16[") == 4


def test_casts(machine: grids.Machine) -> None:
    dtypes = (*INTEGERS, F32, DType.F16, DType.BOOL)
    inputs = tuple(buffer(f"x_{each}", SIZE, dtype=each) for each in dtypes)
    outputs = tuple(buffer(f"y_{each}", len(dtypes), SIZE, dtype=each) for each in dtypes)
    stores = [
        loop.Store(y, (row, i), expr.Cast(expr.Load(x, (i,)), y.dtype))
        for row, x in enumerate(inputs)
        for y in outputs
    ]
    source = program(loop.For(i, SIZE, THREAD_X, loop.block(*stores)), inputs, *outputs)
    check(machine, source, {x.name: numbers(x.dtype, 4, positive=True) for x in inputs}, 1e-3)


ON_CPU = {
    "cuda": """
        #define __device__
        #define __forceinline__ inline
        static unsigned __float_as_uint(float x) { unsigned y; memcpy(&y, &x, 4); return y; }
        static float __uint_as_float(unsigned x) { float y; memcpy(&y, &x, 4); return y; }""",
    "opencl": """
        typedef unsigned short ushort; typedef unsigned uint;
        static uint as_uint(float x) { uint y; memcpy(&y, &x, 4); return y; }
        static float as_float(uint x) { float y; memcpy(&y, &x, 4); return y; }""",
}
"""What the helpers of a language for short floats need of it, in C++."""


@pytest.mark.parametrize("dialect", [CUDA, OPENCL_C], ids=lambda dialect: dialect.name)
def test_short_floats_are_rounded_to_even(dialect: Dialect, tmp_path: Path) -> None:
    """bf16 has the first 16 bits of f32; the helpers are compiled for the processor."""
    if grids.missing_compiler():
        pytest.skip(grids.missing_compiler())
    helpers = dialect.conversions["from_bf16"] + dialect.conversions["to_bf16"]
    text = f"""#include <string.h>
        {ON_CPU[dialect.name]}
        {helpers}
        extern "C" void convert(const float *x, unsigned short *bits, float *back, int n) {{
            for (int i = 0; i < n; i++) bits[i] = to_bf16(x[i]), back[i] = from_bf16(bits[i]);
        }}"""
    (tmp_path / "short.cpp").write_text(text)
    command = ["g++", "-w", "-shared", "-fPIC", "short.cpp", "-o", "short.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    exponents = np.float32([1, 2**-126, 3e38, -7, 2**-133])[:, None]
    ties = np.float32([1, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, 1 + 2**-8 - 2**-20])
    no_numbers = np.uint32([0x7FC00000, 0x7F800001, 0xFFFFFFFF]).view(np.float32)
    numbers = (exponents * ties).ravel()
    values = np.concatenate([numbers, np.float32([0, -0.0, np.inf]), no_numbers])
    bits, back = np.empty(len(values), np.uint16), np.empty_like(values)
    pointers = [each.ctypes.data_as(ctypes.c_void_p) for each in (values, bits, back)]
    ctypes.CDLL(str(tmp_path / "short.so")).convert(*pointers, len(values))
    wanted = values[:-3].astype(DType.BF16.numpy)
    np.testing.assert_array_equal(bits[:-3], wanted.view(np.uint16))
    np.testing.assert_array_equal(back[:-3], wanted.astype(np.float32))
    assert np.isnan(back[-3:]).all()


def test_indices_conditions_and_launches(machine: grids.Machine) -> None:
    """Gathers, padding, partial blocks; each nest is a launch, and they run in order."""
    x, at = buffer("x", 8, 24), buffer("at", 24, dtype=DType.I32)
    y, z, w = buffer("y", 24), buffer("z", 9, 20), buffer("w", 21)
    between = loop.Buffer("between", (24,), F32)
    row, column = expr.mod(expr.Element(at, (i,)), 8), expr.mod(i * 5, 24)
    h, v = j - 2, i - 2
    valid = expr.all_of(h >= 0, h < 5, v >= 0, v < 16)
    place = k * 8 + n
    body = loop.Allocate(
        between,
        loop.block(
            loop.For(i, 24, THREAD_X, loop.Store(between, (i,), expr.Load(x, (row, column)))),
            loop.For(i, 24, BLOCK_X, loop.Store(y, (i,), expr.Load(between, (23 - i,)) * 2)),
            loops(
                *((j, 9, BLOCK_X), (i, 20, THREAD_X)),
                body=loop.Store(
                    z,
                    (j, i),
                    expr.select(valid, expr.apply(expr.Fn.EXP, expr.Load(x, (h, v))), 0.0),
                ),
            ),
            loops(
                *((k, 3, BLOCK_X), (n, 8, THREAD_X)),
                body=loop.If(
                    place < 21, loop.Store(w, (place,), expr.Load(x, (2, expr.floor_div(place, 3))))
                ),
            ),
        ),
    )
    arrays = {"at": np.arange(24, dtype=np.int32) * 7, "x": sample((8, 24), F32, 1)}
    check(machine, program(body, (x, at), y, z, w), arrays)


def tiled_product(rows: int, columns: int, depth: int) -> loop.LoopProgram:
    """A product by blocks of 8x8 that share tiles of 4 steps; each thread has 2x4 sums."""
    a, b = buffer("a", rows, depth), buffer("b", depth, columns)
    c = buffer("c", rows, columns)
    tile_a, tile_b = (
        loop.Buffer(f"{each}.tile", shape, F32, Scope.SHARED)
        for each, shape in (("a", (8, 4)), ("b", (4, 8)))
    )
    sums = local("sums", 2, 4)
    y, x, ty, tx, step = (expr.Var(each) for each in ("y", "x", "ty", "tx", "step"))
    fetch_a = loop.Store(
        tile_a, (ty * 2 + m, tx * 2 + n), expr.Load(a, (y * 8 + ty * 2 + m, step * 4 + tx * 2 + n))
    )
    fetch_b = loop.Store(
        tile_b, (ty, tx * 4 + n), expr.Load(b, (step * 4 + ty, x * 8 + tx * 4 + n))
    )
    add = loop.Store(
        sums,
        (m, n),
        expr.Load(sums, (m, n))
        + expr.Load(tile_a, (ty * 2 + m, k)) * expr.Load(tile_b, (k, tx * 4 + n)),
    )
    threads = loop.Allocate(
        sums,
        loop.block(
            loops(
                (m, 2, SERIAL), (n, 4, VECTOR), body=loop.Store(sums, (m, n), expr.constant(0, F32))
            ),
            loop.For(
                step,
                depth // 4,
                SERIAL,
                loop.block(
                    loop.Barrier(),
                    loops((m, 2, UNROLLED), (n, 2, VECTOR), body=fetch_a),
                    loop.For(n, 4, VECTOR, fetch_b),
                    loop.Barrier(),
                    loops((k, 4, UNROLLED), (m, 2, UNROLLED), (n, 4, VECTOR), body=add),
                ),
            ),
            loops(
                *((m, 2, SERIAL), (n, 4, VECTOR)),
                body=loop.Store(
                    c, (y * 8 + ty * 2 + m, x * 8 + tx * 4 + n), expr.Load(sums, (m, n))
                ),
            ),
        ),
    )
    group = loops((ty, 4, THREAD_Y), (tx, 2, THREAD_X), body=threads)
    shared = loop.Allocate(tile_a, loop.Allocate(tile_b, group))
    nest = loops((y, rows // 8, BLOCK_Y), (x, columns // 8, BLOCK_X), body=shared)
    return program(nest, (a, b), c)


def test_threads_share_tiles(machine: grids.Machine) -> None:
    source = tiled_product(16, 24, 12)
    arrays = {"a": sample((16, 12), F32, 1), "b": sample((12, 24), F32, 2)}
    check(machine, source, arrays)


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_as_the_rules_schedule_them(machine: grids.Machine, name: str) -> None:
    source = grid_program(name, grids.OPENCL_GENERIC)
    arrays = {
        each.name: sample(grids.caller_shape(each), F32, number)
        for number, each in enumerate(source.parameters)
        if each.role is not loop.Role.OUTPUT
    }
    check(machine, source, arrays)


def grid_program(name: str, target: GpuTarget) -> loop.LoopProgram:
    """The loops that the rules make of one operator for a graphics processor."""
    (workload, *_) = partition(operator_graph(name, F32)).workloads
    return loop_program(workload, default_trace(state_of(workload), target), target, name)


@pytest.mark.layer("shim", "pocl")
def test_random_schedules() -> None:
    """Barriers, shared tiles, vectors and partial tiles in any order; few by OpenCL, which compiles
    them one by one and has no exchange between threads.
    """
    cases: list[tuple[loop.LoopProgram, dict[str, np.ndarray]]] = []

    @settings(max_examples=20, phases=(Phase.generate,))
    @given(schedules(on_card=True))
    def draw(case: tuple[Expression, Trace, dict[str, int]]) -> None:
        expression, trace, _ = case
        source = loop.run_passes(loop.lower(replay(expression.state, trace)))
        cases.append((source, expression.arrays()))

    draw()
    by_opencl, by_cuda = grids.MACHINES
    if by_cuda.missing() and by_opencl.missing():
        pytest.skip(f"{by_cuda.missing()}, {by_opencl.missing()}")
    wanted = [interpret(source, arrays) for source, arrays in cases]
    found = [] if by_cuda.missing() else grids.run_all_on_cpu(*zip(*cases, strict=True))
    exchanging = [any(isinstance(p, loop.LaneFold) for p in loop.walk(s.body)) for s, _ in cases]
    few = [number for number, is_so in enumerate(exchanging) if not is_so][::10]
    for number, (source, arrays) in enumerate(cases):
        results = [found[number]] if found else []
        if number in few and not by_opencl.missing():
            results.append(by_opencl.run(source, arrays))
        for each, (name, want) in product(results, wanted[number].items()):
            np.testing.assert_allclose(each[name], want, 1e-4, 1e-4, err_msg=str(source))


def by_rule(output: expr.Compute, target: GpuTarget, name: str) -> loop.LoopProgram:
    """The loops that the rules make of a program."""
    workload = graph.program([output])
    return loop_program(workload, default_trace(state_of(workload), target), target, name)


def split_product(target: GpuTarget) -> loop.LoopProgram:
    """Few elements and many terms: blocks fold parts of them."""
    (product,) = matmul(16, 32, 1024).outputs
    return by_rule(product, target, "split")


def long_rows(target: GpuTarget) -> loop.LoopProgram:
    """The softmax of rows of 1000 elements: the threads of a block fold a row."""
    (output,) = softmax(64, 1000).outputs
    return by_rule(output, target, "rows")


def product_by(steps: str) -> loop.LoopProgram:
    """A product of 16x24x32 by shared tiles, with more steps."""
    return product_of(16, 24, 32, SMALL_TILES, steps).program


PIPELINES = {
    "plain": "",
    "registers": "pipeline(c_cache, k_o, 2, registers)",
    "copies": "pipeline(c_cache, k_o, 3, cp_async)",
    "padded": "layout(a_c_cache_cache, padded, 4)",
    "swizzled": "layout(a_c_cache_cache, xor, 32)\npipeline(c_cache, k_o, 2, cp_async)",
    "bounds": "launch_bounds(c, 4)",
}


@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines_and_layouts(machine: grids.Machine, name: str) -> None:
    source = product_by(PIPELINES[name])
    arrays = {"a": sample((16, 32), F32, 1), "b": sample((32, 24), F32, 2)}
    check(machine, source, arrays)
    if find_nvrtc() is not None:
        text = grids.CUDA_BACKEND.emit(source, grids.SM_90A)
        assert grids.CUDA_BACKEND.compile(text, grids.SM_90A)[:4] == b"\x7fELF"


@pytest.mark.layer("nvrtc")
def test_sums_of_a_thread_are_in_registers() -> None:
    """A tile of 8x8 sums: its array is indexed by unrolled loops alone."""
    nvrtc = find_nvrtc()
    if nvrtc is None:
        pytest.skip("NVRTC is not installed")
    source = product_of(256, 256, 256, product_tiles(), "").program
    text = grids.CUDA_BACKEND.emit(source, grids.SM_80)
    (taken,) = nvrtc.resources(text.text, grids.SM_80.arch, "kernel")
    assert taken.function == "kernel"
    assert (taken.stack_bytes, taken.spilled_bytes) == (0, 0)
    assert 64 < taken.registers <= 168
    assert grids.CUDA_BACKEND.listing(text, grids.SM_80).startswith(
        f"// kernel: {taken.registers} registers"
    )


def test_cards_without_copies_of_their_own_store() -> None:
    source = product_by(PIPELINES["copies"])
    assert "start_copy<16>(" in grids.CUDA_BACKEND.emit(source, grids.SM_80).text
    assert "start_copy" not in grids.CUDA_BACKEND.emit(source, grids.gpu_target("cuda:sm_75")).text


@pytest.mark.layer("shim")
def test_threads_of_a_warp_exchange_values() -> None:
    machine = grids.MACHINES[1]
    machine.require()
    r = expr.reduce_axis("k", 16)
    x = expr.placeholder("x", (6, 16))
    total = expr.compute("y", (6,), lambda i: expr.sum_over(x[i, r], r))
    state = state_of(graph.program([total]))
    trace = parse_trace(
        "split(y, i, [2])\nbind(y, i_o, block.x)\nbind(y, i_i, thread.y)\nshuffle_reduce(y, k)"
    )
    source = loop.run_passes(loop.lower(replay(state, trace)))
    check(machine, source, {"x": sample((6, 16), F32, 1)})
    with pytest.raises(UnsupportedError, match="opencl has no exchange between the threads"):
        grids.OPENCL.emit(source, grids.OPENCL_GENERIC)
    if find_nvrtc() is not None:
        assert (
            grids.CUDA_BACKEND.compile(grids.CUDA_BACKEND.emit(source, grids.SM_80), grids.SM_80)[
                :4
            ]
            == b"\x7fELF"
        )


@pytest.mark.parametrize("name", ["product", "softmax", "rows", "split", "tiles", "copies"])
@pytest.mark.parametrize(
    "backend", [grids.OPENCL, grids.CUDA_BACKEND], ids=lambda backend: backend.name
)
def test_text(backend: Backend[GpuTarget], name: str, golden: Callable[..., None]) -> None:
    target = grids.OPENCL_GENERIC if backend is grids.OPENCL else grids.SM_80
    if name == "copies":
        source = product_by(PIPELINES[name])
    elif name == "split":
        source = split_product(target)
    elif name == "rows":
        source = long_rows(target)
    else:
        source = tiled_product(64, 64, 64) if name == "tiles" else grid_program(name, target)
    golden(backend.emit(source, target).text, suffix=backend.suffix)


@pytest.mark.layer("nvrtc")
@pytest.mark.parametrize("target", [grids.SM_80, grids.SM_90A], ids=str)
def test_nvrtc_makes_machine_code(target: GpuTarget) -> None:
    if find_nvrtc() is None:
        pytest.skip("NVRTC is not installed")
    sources = [tiled_product(64, 64, 64), grid_program("softmax", target)]
    sources += [of_groups({F32: ON_REALS + ON_POSITIVE, DType.F16: (expr.Fn.ADD,)}, THREAD_X)]
    for each in sources:
        source = grids.CUDA_BACKEND.emit(each, target)
        assert grids.CUDA_BACKEND.compile(source, target)[:4] == b"\x7fELF"
        assert source.signature.symbol in grids.CUDA_BACKEND.listing(source, target)
