"""What every back end must do: compute what the interpreter of the loop IR computes.

It runs those for processors in `build.BACKENDS`; one whose compiler is missing here is skipped and
says so.
Programs that take a compiler of C seconds are joined: many functions are one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from tests.backends import CPU_BACKENDS, C
from tests.targets import AVX2
from tests.unit.codegen.kernels import (
    F32,
    NATIVE,
    PARALLEL,
    SERIAL,
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
    program,
    run,
)
from tests.unit.loop.programs import arrays_for, loop_programs, same

from tensorwright import loop
from tensorwright.artifacts import loop_program
from tensorwright.base import CpuTarget, DType, UnsupportedError
from tensorwright.codegen import Backend
from tensorwright.expr import (
    Cast,
    Element,
    Fn,
    FromIndex,
    Load,
    all_of,
    apply,
    constant,
    floor_div,
    mod,
    select,
)
from tensorwright.graph import Graph, GraphBuilder, choose_layouts, partition, simplify
from tensorwright.schedule import ForKind, Scope, state_of
from tensorwright.tuning.space import default_trace
from tensorwright_lab.loop_interpreter import interpret

QUICK = replace(C, level=1)
BINARY_SAFE = (Fn.ADD, Fn.SUB, Fn.MUL, Fn.MIN, Fn.MAX, Fn.LT, Fn.LE, Fn.EQ, Fn.NE)
ON_FLOATS = (Fn.DIV, Fn.MOD, Fn.FLOORMOD, Fn.POW, Fn.ATAN2)
UNARY = (Fn.NEG, Fn.ABS, Fn.SIGN, Fn.FLOOR, Fn.CEIL, Fn.ROUND, Fn.TRUNC, Fn.ISNAN, Fn.ISINF)
ON_POSITIVE = (Fn.SQRT, Fn.RSQRT, Fn.LOG, Fn.LOG1P)
ON_REALS = (
    *(Fn.EXP, Fn.EXPM1, Fn.SIN, Fn.COS, Fn.TAN, Fn.ATAN, Fn.SINH, Fn.COSH, Fn.TANH),
    *(Fn.ASINH, Fn.ERF, Fn.SIGMOID),
)
ON_BITS = (Fn.BITAND, Fn.BITOR, Fn.BITXOR, Fn.DIV, Fn.MOD, Fn.FLOORMOD, Fn.POW, Fn.SHL, Fn.SHR)
ON_BOOLS = (Fn.AND, Fn.OR, Fn.XOR, Fn.EQ, Fn.NE, Fn.ADD, Fn.MUL, Fn.MIN, Fn.MAX)
INTEGERS = tuple(d for d in DType if d.is_int)
FLOATS = (DType.F32, DType.F64, DType.F16, DType.BF16)
SIZE = 21
TOLERANCE = {DType.F16: 2e-3, DType.BF16: 2e-2}


@pytest.fixture(params=CPU_BACKENDS, ids=lambda backend: backend.name)
def backend(request: pytest.FixtureRequest) -> Backend[CpuTarget]:
    chosen: Backend[CpuTarget] = request.param
    reason = chosen.supports(NATIVE)
    if reason:
        pytest.skip(reason)
    return QUICK if chosen is C else chosen


def of_functions(functions: tuple[Fn, ...], dtype: DType, kind: ForKind) -> loop.LoopProgram:
    """One output for each function."""
    inputs = tuple(buffer(f"x{n}", SIZE, dtype=dtype) for n in range(2))
    loads = tuple(Load(each, (i,)) for each in inputs)
    stores: list[loop.Stmt] = []
    outputs: list[loop.Buffer] = []
    for number, fn in enumerate(functions):
        value = apply(fn, *loads[: fn.arity])
        outputs.append(buffer(f"y{number}", SIZE, dtype=value.dtype))
        stores.append(loop.Store(outputs[-1], (i,), value))
    return program(loop.For(i, SIZE, kind, loop.block(*stores)), inputs, *outputs)


def numbers(dtype: DType, seed: int, *, positive: bool = False) -> np.ndarray:
    random = np.random.default_rng(seed)
    if dtype is DType.BOOL:
        return random.integers(0, 2, SIZE).astype(bool)
    if dtype.is_int:
        return random.integers(0 if positive or not dtype.is_signed else -9, 9, SIZE).astype(
            dtype.numpy
        )
    values = random.standard_normal(SIZE) * 2
    return (abs(values) + 0.1 if positive else values).astype(dtype.numpy)


@pytest.mark.parametrize("kind", [SERIAL, VECTOR])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_functions_of_floats(backend: Backend[CpuTarget], dtype: DType, kind: ForKind) -> None:
    signed = {"x0": numbers(dtype, 1), "x1": numbers(dtype, 2)}
    positive = {name: numbers(dtype, 3, positive=True) for name in signed}
    tolerance = TOLERANCE.get(dtype, 2e-6)
    for functions, arrays in (
        (BINARY_SAFE + UNARY + ON_REALS, signed),
        (ON_POSITIVE + ON_FLOATS, positive),
    ):
        source = of_functions(functions, dtype, kind)
        check(source, NATIVE, arrays=arrays, tolerance=tolerance, backend=backend)


@pytest.mark.parametrize("kind", [SERIAL, VECTOR])
def test_functions_of_integers(backend: Backend[CpuTarget], kind: ForKind) -> None:
    for dtype in INTEGERS:
        arrays = {"x0": numbers(dtype, 1), "x1": numbers(dtype, 2, positive=True)}
        source = of_functions(BINARY_SAFE + UNARY + ON_BITS + (Fn.BITNOT,), dtype, kind)
        check(source, NATIVE, arrays=arrays, backend=backend)


@pytest.mark.parametrize("kind", [SERIAL, VECTOR])
def test_functions_of_bools(backend: Backend[CpuTarget], kind: ForKind) -> None:
    arrays = {"x0": numbers(DType.BOOL, 1), "x1": numbers(DType.BOOL, 2)}
    source = of_functions((*ON_BOOLS, Fn.NOT), DType.BOOL, kind)
    check(source, NATIVE, arrays=arrays, backend=backend)


@pytest.mark.parametrize("kind", [SERIAL, VECTOR])
def test_casts(backend: Backend[CpuTarget], kind: ForKind) -> None:
    dtypes = (*INTEGERS, *FLOATS, DType.BOOL)
    inputs = tuple(buffer(f"x_{d}", SIZE, dtype=d) for d in dtypes)
    stores: list[loop.Stmt] = []
    outputs: list[loop.Buffer] = []
    for source in inputs:
        for new in dtypes:
            outputs.append(buffer(f"{source.name}_{new}", SIZE, dtype=new))
            stores.append(loop.Store(outputs[-1], (i,), Cast(Load(source, (i,)), new)))
    arrays = {x.name: numbers(x.dtype, 4, positive=True) for x in inputs}
    source_program = program(loop.For(i, SIZE, kind, loop.block(*stores)), inputs, *outputs)
    check(source_program, NATIVE, arrays=arrays, tolerance=1e-2, backend=backend)


BEYOND = (0.5, -0.5, 1.9, -1.9, 127.5, 128, -128.9, -129, 255.9, 256, 32767.5, 65536, 2147483520)
FAR_BEYOND = (2147483648, 4294967296, 9.2e18, 9.3e18, 1.9e19, 1e30, np.inf)


@pytest.mark.parametrize("kind", [SERIAL, VECTOR])
@pytest.mark.parametrize("dtype", [DType.F32, DType.F64], ids=str)
def test_floats_beyond_a_range_give_its_end(
    backend: Backend[CpuTarget], dtype: DType, kind: ForKind
) -> None:
    values = np.array([*BEYOND, *FAR_BEYOND, *(-x for x in FAR_BEYOND), np.nan], dtype.numpy)
    x = buffer("x", len(values), dtype=dtype)
    outputs = [buffer(f"y_{each}", len(values), dtype=each) for each in INTEGERS]
    stores = [loop.Store(y, (i,), Cast(Load(x, (i,)), y.dtype)) for y in outputs]
    source = program(loop.For(i, len(values), kind, loop.block(*stores)), (x,), *outputs)
    found = run(source, {"x": values}, NATIVE, 1, backend)
    for y in outputs:
        ends = int(y.dtype.lowest), int(y.dtype.highest)
        for value, number in zip(values, found[y.name], strict=True):
            finite = 0 if np.isnan(value) else max(min(value, 1e25), -1e25)
            assert int(number) == max(min(int(finite), ends[1]), ends[0]), (value, y.dtype)


def test_extremes_keep_nan(backend: Backend[CpuTarget]) -> None:
    values = np.array([1.0, np.nan, -np.inf, np.inf] * 5 + [0.5], np.float32)
    arrays = {"x0": values, "x1": values[::-1].copy()}
    source = of_functions((Fn.MIN, Fn.MAX, Fn.ISNAN, Fn.ISINF), F32, VECTOR)
    check(source, NATIVE, arrays=arrays, backend=backend)


@pytest.mark.parametrize("kind", [SERIAL, UNROLLED, VECTOR, PARALLEL])
def test_loops_of_any_kind_and_extent(backend: Backend[CpuTarget], kind: ForKind) -> None:
    extents = (1, 2, 7, 16, 31, 200)
    inputs = tuple(buffer(f"x{n}", 3, n) for n in extents)
    outputs = tuple(buffer(f"y{n}", 3, n) for n in extents)
    nests = [
        loops((j, 3, SERIAL), (i, n, kind), body=loop.Store(y, (j, i), Load(x, (j, i)) * 2 + 1))
        for n, x, y in zip(extents, inputs, outputs, strict=True)
    ]
    check(program(loop.block(*nests), inputs, *outputs), NATIVE, threads=2, backend=backend)


def test_indices_that_are_not_linear(backend: Backend[CpuTarget]) -> None:
    x, at = buffer("x", 8, 24), buffer("at", 24, dtype=DType.I32)
    y, z, w = buffer("y", 24), buffer("z", 24), buffer("w", 40)
    row, column = mod(Element(at, (i,)), 8), mod(i * 5, 24)
    body = loop.block(
        loop.For(i, 24, VECTOR, loop.Store(y, (i,), Load(x, (row, column)))),
        loop.For(i, 24, VECTOR, loop.Store(z, (i,), Load(x, (floor_div(i, 3), 23 - i)))),
        loop.For(k, 40, SERIAL, loop.Store(w, (k,), constant(0, F32))),
        loop.For(
            i,
            24,
            VECTOR,
            loop.If(mod(i, 3) < 2, loop.Store(w, (floor_div(i * 5, 3),), Load(x, (0, i)))),
        ),
    )
    arrays = {"at": np.arange(24, dtype=np.int32)}
    check(program(body, (x, at), y, z, w), NATIVE, arrays=arrays, backend=backend)


def test_padding_never_reads_outside(backend: Backend[CpuTarget]) -> None:
    x = buffer("x", 2, 5, 16)
    h, w = j - 2, i - 2
    valid = all_of(h >= 0, h < 5, w >= 0, w < 16)
    outputs = tuple(buffer(f"y{n}", 2, 9, 20) for n in range(3))
    nests = [
        loops(
            *((k, 2, SERIAL), (j, 9, SERIAL), (i, 20, kind)),
            body=loop.Store(y, (k, j, i), select(valid, apply(Fn.EXP, Load(x, (k, h, w))), 0.0)),
        )
        for kind, y in zip((SERIAL, VECTOR, UNROLLED), outputs, strict=True)
    ]
    check(program(loop.block(*nests), (x,), *outputs), NATIVE, backend=backend)


def test_register_tiles(backend: Backend[CpuTarget]) -> None:
    """A tile of a product: its sums are local, its columns vectors, its rows unrolled."""
    a, b, c = buffer("a", 12, 9), buffer("b", 9, 32), buffer("c", 12, 32)
    tile = local("tile", 4, 32)
    here = Load(tile, (m, i))
    body = loop.Allocate(
        tile,
        loop.block(
            loops(
                (m, 4, UNROLLED), (i, 32, VECTOR), body=loop.Store(tile, (m, i), constant(0, F32))
            ),
            loops(
                *((k, 9, SERIAL), (m, 4, UNROLLED), (i, 32, VECTOR)),
                body=loop.Store(tile, (m, i), here + Load(a, (j * 4 + m, k)) * Load(b, (k, i))),
            ),
            loops(
                *((m, 4, UNROLLED), (i, 32, VECTOR)),
                body=loop.Store(c, (j * 4 + m, i), apply(Fn.MAX, here, 0.0)),
            ),
        ),
    )
    for kind in (SERIAL, PARALLEL):
        check(program(loop.For(j, 3, kind, body), (a, b), c), NATIVE, threads=2, backend=backend)


def test_folds_in_the_lanes(backend: Backend[CpuTarget]) -> None:
    x, y = buffer("x", 4, 40), buffer("y", 4, 3)
    nests = [loop.Store(y, (j, n), constant(start, F32)) for n, start in enumerate((0, -9, 9))]
    for n, fn in enumerate((Fn.ADD, Fn.MAX, Fn.MIN)):
        value = apply(fn, Load(y, (j, n)), Load(x, (j, i)))
        nests.append(loop.For(i, 40, VECTOR, loop.Store(y, (j, n), value)))
    check(program(loop.For(j, 4, SERIAL, loop.block(*nests)), (x,), y), NATIVE, backend=backend)


def test_buffers_of_every_size(backend: Backend[CpuTarget]) -> None:
    """On the stack, in the workspace of a thread, in that of the call, and one of each lane."""
    x, y = buffer("x", 6, 300), buffer("y", 6, 300)
    for scratch in (local("t", 300), local("t", 300, 100), loop.Buffer("t", (6, 300), F32)):
        at = {1: (i,), 2: (j, i)}[len(scratch.shape)]
        if len(scratch.shape) == 2 and scratch.scope is Scope.LOCAL:
            at = (i, 7)
        body: loop.Stmt = loop.block(
            loop.For(i, 300, VECTOR, loop.Store(scratch, at, Load(x, (j, i)) * 2)),
            loop.For(i, 300, SERIAL, loop.Store(y, (j, i), Load(scratch, at) + 1)),
        )
        inside = scratch.scope is Scope.LOCAL
        nest = loop.For(j, 6, PARALLEL, loop.Allocate(scratch, body) if inside else body)
        source = program(nest if inside else loop.Allocate(scratch, nest), (x,), y)
        check(source, NATIVE, threads=2, backend=backend)
    total = local("total")
    lanes = loop.Allocate(
        total,
        loop.block(
            loop.Store(total, (), constant(0, F32)),
            loop.For(j, 6, SERIAL, loop.Store(total, (), Load(total, ()) + Load(x, (j, i)))),
            loop.Store(buffer("z", 300), (i,), Load(total, ())),
        ),
    )
    check(program(loop.For(i, 300, VECTOR, lanes), (x,), buffer("z", 300)), NATIVE, backend=backend)


def test_numbers_from_indices_prefetches_and_intrinsics(backend: Backend[CpuTarget]) -> None:
    x, y, z = buffer("x", 40), buffer("y", 40), buffer("z", 40, dtype=DType.I64)
    body = loop.block(
        loops(
            (i, 40, SERIAL),
            body=loop.block(
                loop.Prefetch(x, (i + 16,)),
                loop.Call("none", (loop.Window(y, (i,)),), loop.Store(y, (i,), Load(x, (i,)))),
            ),
        ),
        loop.For(k, 40, VECTOR, loop.Store(z, (k,), FromIndex(mod(k * 7, 5) - 2, DType.I64))),
    )
    check(program(body, (x,), y, z), NATIVE, backend=backend)


@given(source=loop_programs())
@settings(max_examples=8, phases=(Phase.generate,))
def test_random_nests(source: loop.LoopProgram) -> None:
    arrays = arrays_for(source)
    expected = interpret(source, arrays)
    for each in CPU_BACKENDS:
        if not each.supports(NATIVE):
            usable = QUICK if each is C else each
            same(run(source, arrays, NATIVE, 1, usable), expected)


def test_loops_of_graphics_processors_are_refused(backend: Backend[CpuTarget]) -> None:
    x = buffer("x", 4)
    source = program(loop.For(i, 4, ForKind.THREAD_X, loop.Store(x, (i,), constant(0, F32))), (), x)
    if backend.name in ("llvm", "c"):
        with pytest.raises(UnsupportedError, match="graphics processors"):
            backend.emit(source, NATIVE)


def test_one_text_for_one_program(backend: Backend[CpuTarget]) -> None:
    source = of_functions((Fn.ADD, Fn.EXP), F32, VECTOR)
    first = backend.emit(source, NATIVE)
    assert first.text == backend.emit(source, NATIVE).text
    assert first.signature.symbol in first.text


def operator_graph(name: str, dtype: DType) -> Graph:
    """One operator, and what is fused with it."""
    random = np.random.default_rng(0)
    graph = GraphBuilder(name)
    match name:
        case "convolution":
            x = graph.input("x", (1, 3, 7, 7), dtype)
            weights = random.standard_normal((16, 3, 3, 3)).astype(dtype.numpy)
            features = graph.add("conv", x, graph.constant(weights), pads=(1, 1, 1, 1))
            result = graph.add("relu", features)
        case "product":
            x = graph.input("x", (6, 10), dtype)
            weights = random.standard_normal((10, 16)).astype(dtype.numpy)
            result = graph.add("matmul", x, graph.constant(weights))
        case "softmax":
            result = graph.add("softmax", graph.input("x", (3, 21), dtype), axis=1)
        case "pooling":
            x = graph.input("x", (1, 16, 5, 5), dtype)
            result = graph.add("max_pool", x, kernel=(3, 3), strides=(2, 2))
        case "elementwise":
            x = graph.input("x", (5, 19), dtype)
            result = graph.add("mul", graph.add("sigmoid", x), graph.add("add", x, x))
        case "threads":
            x = graph.input("x", (500, 1000), dtype)
            result = graph.add("mul", x, graph.add("sigmoid", x))
        case _:
            raise ValueError(name)
    return simplify(graph.finish((result,)))


def operator_program(name: str, dtype: DType, target: CpuTarget) -> loop.LoopProgram:
    """The loops that the rules make of one operator."""
    (workload, *_) = partition(choose_layouts(operator_graph(name, dtype), target)).workloads
    return loop_program(workload, default_trace(state_of(workload), target), target, name)


OPERATORS = ("convolution", "product", "softmax", "pooling", "elementwise")


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_as_the_rules_schedule_them(backend: Backend[CpuTarget], name: str) -> None:
    for dtype in (F32, DType.F64):
        source = operator_program(name, dtype, NATIVE)
        random = np.random.default_rng(1)
        arrays = {
            p.name: random.standard_normal(
                p.packing.source_shape if p.packing else p.buffer.shape
            ).astype(dtype.numpy)
            for p in source.parameters
            if p.role is not loop.Role.OUTPUT
        }
        expected = interpret(source, arrays)
        found = run(source, packed(source, arrays), NATIVE, 2, backend)
        for output, array in expected.items():
            np.testing.assert_allclose(found[output], array, rtol=1e-5, atol=1e-5)


def packed(source: loop.LoopProgram, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays as kernels read them."""
    return {
        p.buffer.name: loop.pack(arrays[p.name], p.packing) if p.packing else arrays[p.name]
        for p in source.parameters
        if p.name in arrays
    }


@pytest.mark.parametrize("name", [*OPERATORS[:4], "threads"])
def test_text(backend: Backend[CpuTarget], name: str, golden: Callable[..., None]) -> None:
    """What is written for one target: a change of a back end shows as a change of its text."""
    golden(backend.emit(operator_program(name, F32, AVX2), AVX2).text, suffix=backend.suffix)
