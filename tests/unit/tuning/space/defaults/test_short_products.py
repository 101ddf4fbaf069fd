"""The rule for products of bytes: when it applies, and that its schedules compute what they should.

Where the processor has no such instruction, the loops that it stands for run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.strategies import integers, sampled_from
from ml_dtypes import bfloat16
from numpy.typing import NDArray
from tests.draws import some_of
from tests.targets import AVX2, AVX512, native_target
from tests.unit.codegen.kernels import k, tile_of_bytes
from tests.unit.tuning.compiled import Case, check_schedule, workloads

from tensorwright.artifacts import loop_program
from tensorwright.base import SHORT_PRODUCTS, CpuTarget, DType, cpu_target
from tensorwright.expr import (
    Index,
    Reduce,
    cast,
    compute,
    named_size,
    placeholder,
    reduce_axis,
    sum_over,
    topological_order,
)
from tensorwright.graph import Graph, GraphBuilder, program
from tensorwright.graph.passes.quantized import lower_quantized
from tensorwright.loop import Call, For, If, Stmt, walk
from tensorwright.loop.passes import expand_guarded_calls
from tensorwright.loop.traversal import children_of
from tensorwright.pipeline import prepare
from tensorwright.records import Setting
from tensorwright.schedule import (
    ComputeInline,
    Reorder,
    ScheduleState,
    Tensorize,
    format_trace,
    state_of,
)
from tensorwright.tuning.selection import Chooser
from tensorwright.tuning.space import Sketch, default_trace, heuristic_sketches, sketches_of

pytestmark = pytest.mark.target

RANDOM = np.random.default_rng(4)
VNNI = replace(AVX512, features=(*AVX512.features, "avx512vnni"))
TARGET = native_target()
I8MM = cpu_target("aarch64-neon+dotprod+i8mm")


def codes(*shape: int) -> NDArray[np.int8]:
    return RANDOM.integers(-127, 128, shape).astype(np.int8)


def product(
    shape: tuple[int, ...],
    columns: int,
    *,
    moves: bool = False,
    makes_codes: bool = False,
    zero: int | None = None,
    dtype: DType = DType.U8,
) -> Graph:
    """Rows of bytes by a constant matrix, scaled; their results moved, their codes made, or not."""
    b = GraphBuilder("bytes")
    zeros = () if zero is None else (b.constant(np.array(zero, np.uint8)),)
    if makes_codes:
        scale = b.constant(np.array(0.03, np.float32))
        x = b.add("quantize_linear", b.input("x", shape), scale, *zeros)
    else:
        x = b.input("x", shape, dtype)
    sums = b.add("matmul_integer", x, b.constant(codes(shape[-1], columns)), *zeros)
    scales = b.constant(RANDOM.uniform(0.01, 0.02, columns).astype(np.float32))
    y = b.add("relu", b.add("mul", b.add("cast", sums, to=DType.F32), scales))
    if moves:
        heads = b.add("reshape", y, shape=(shape[-2], 4, columns // 4))
        y = b.add("transpose", heads, perm=(1, 2, 0))
    return b.finish([y])


def image(
    size: int,
    channels: int,
    filters: int,
    window: int = 1,
    *,
    zero: int | None = None,
) -> Graph:
    """A convolution of codes between others, whose channels lie in blocks."""
    b = GraphBuilder("image")
    zeros = () if zero is None else (b.constant(np.array(zero, np.uint8)),)
    scale = b.constant(np.array(0.05, np.float32))
    before = b.constant(RANDOM.standard_normal((channels, 8, 3, 3)).astype(np.float32))
    x = b.add("conv", b.input("x", (2, 8, size, size)), before, pads=(1, 1, 1, 1))
    sums = b.add(
        "conv_integer",
        b.add("quantize_linear", x, scale, *zeros),
        b.constant(codes(filters, channels, window, window)),
        *zeros,
        pads=(window // 2,) * 4,
        strides=(2, 2) if size % 2 == 0 else (1, 1),
    )
    y = b.add("mul", b.add("cast", sums, to=DType.F32), scale)
    after = b.constant(RANDOM.standard_normal((filters, 1, 3, 3)).astype(np.float32))
    y = b.add("conv", b.add("relu", y), after, groups=filters, pads=(1, 1, 1, 1))
    return b.finish([y])


def only(graph: Graph, target: CpuTarget = VNNI) -> Case:
    """The product of bytes of a network."""
    found = [
        case
        for case in workloads(graph, target)
        if "integer" in "".join(tensor.name for tensor in topological_order(*case[0].outputs))
    ]
    assert len(found) == 1
    return found[0]


def state(graph: Graph) -> ScheduleState:
    return state_of(only(graph)[0])


CASES: dict[str, Callable[[], Graph]] = {
    "rows that divide": lambda: product((24, 64), 64),
    "rows that do not": lambda: product((29, 32), 48),
    "one row": lambda: product((1, 128), 32),
    "few terms": lambda: product((9, 4), 16),
    "a batch": lambda: product((3, 10, 36), 80),
    "moved results": lambda: product((12, 64), 64, moves=True),
    "codes made before": lambda: product((20, 64), 32, makes_codes=True),
    "many columns": lambda: product((8, 64), 1024),
    "pixels": lambda: image(13, 32, 48),
    "every second pixel": lambda: image(14, 16, 64),
    "windows": lambda: image(11, 32, 32, 3),
    "every second window": lambda: image(12, 16, 16, 5),
}


@pytest.mark.parametrize("network", CASES.values(), ids=CASES.keys())
def test_the_instruction_does_the_work(network: Callable[[], Graph]) -> None:
    case = only(network())
    (sketch,) = heuristic_sketches(state_of(case[0]), VNNI)
    assert sketch.name == "products of short numbers"
    generator = np.random.default_rng(0)
    rows = [[int(generator.integers(len(c.values))) for c in sketch.choices] for _ in range(20)]
    others = [sketch.decisions_of(tuple(row)) for row in rows]
    valid = [each for each in others if sketch.is_valid(each)][:3]
    for decisions in (sketch.defaults, *valid):
        trace = sketch.bound(decisions)
        assert any(isinstance(step, Tensorize) for step in trace)
        check_schedule(case, format_trace(trace), TARGET)


def test_columns_that_fill_up_vectors_are_cut_off_where_tiles_are_stored() -> None:
    case = only(lower_quantized(product((9, 64), 125), VNNI))
    (sketch,) = heuristic_sketches(state_of(case[0]), VNNI)
    trace = sketch.bound(sketch.defaults)
    assert any(isinstance(step, Tensorize) for step in trace)
    check_schedule(case, format_trace(trace), TARGET)


@pytest.mark.parametrize("features", ["dotprod", "i8mm", "dotprod+i8mm"])
@pytest.mark.parametrize("name", ["codes with a zero point", "pixels"])
def test_arm_has_shorter_vectors_and_signed_data(features: str, name: str) -> None:
    target = cpu_target(f"aarch64-neon+{features}")
    if name == "pixels":
        network = image(13, 32, 48, zero=117)
    else:
        network = product((12, 32), 20, makes_codes=True, zero=117)
    case = only(lower_quantized(network, target), target)
    *_, sketch = heuristic_sketches(state_of(case[0]), target)
    trace = sketch.bound(sketch.defaults)
    (call,) = (step for step in trace if isinstance(step, Tensorize))
    is_signed = "i8mm" not in features
    assert call.intrinsic == ("dot4_i8i8_i32x4" if is_signed else "dot4_u8i8_i32x4")
    check_schedule(case, format_trace(trace), TARGET)


@pytest.mark.parametrize(
    ("features", "intrinsic"),
    [("avx2+avxvnni", "dot4_u8i8_i32x8"), ("avx512+avx512vnni", "dot4_u8i8_i32_ymm")],
)
@pytest.mark.parametrize("name", ["codes with a zero point", "pixels"])
def test_vectors_of_eight(name: str, features: str, intrinsic: str) -> None:
    target = cpu_target(f"x86-64-{features}")
    network = image(13, 32, 24) if name == "pixels" else product((12, 32), 24, zero=117)
    case = only(lower_quantized(network, target), target)
    (sketch,) = heuristic_sketches(state_of(case[0]), target)
    trace = sketch.bound(sketch.defaults)
    assert [s.intrinsic for s in trace if isinstance(s, Tensorize)] == [intrinsic]
    if name == "pixels":  # the columns of a tile are inside of its rows
        loops = [step.loops for step in trace if isinstance(step, Reorder)][-1]
        assert (loops[-4], loops[-1]) == ("w", "ic_2")
    check_schedule(case, format_trace(trace), TARGET)


@pytest.mark.parametrize("rows", [1, 7, 40])
def test_pairs_of_bf16_are_multiplied_with_sums_of_f32(rows: int) -> None:
    terms = reduce_axis("t", 36)
    x, w = placeholder("x", (rows, 36), DType.BF16), placeholder("w", (36, 48), DType.BF16)

    def summed(row: Index, column: Index) -> Reduce:
        factors = (cast(x[row, terms], DType.F32), cast(w[terms, column], DType.F32))
        return sum_over(factors[0] * factors[1], terms)

    workload = program(compute("y", (rows, 48), summed), constants=("w",))
    arrays = [RANDOM.standard_normal(shape).astype(bfloat16) for shape in ((rows, 36), (36, 48))]
    state = state_of(workload)
    (sketch,) = heuristic_sketches(state, cpu_target("x86-64-avx512+avx512bf16"))
    trace = sketch.bound(sketch.defaults)
    assert [s.intrinsic for s in trace if isinstance(s, Tensorize)] == ["dot2_bf16"]
    check_schedule((workload, tuple(arrays)), format_trace(trace), TARGET)
    assert not any("short" in each.name for each in heuristic_sketches(state, AVX512))


@pytest.mark.parametrize("rows", [40, 128])
def test_constants_of_bf16_are_widened_once_for_many_rows(rows: int) -> None:
    terms = reduce_axis("t", 36)
    x, w = placeholder("x", (rows, 36), DType.F32), placeholder("w", (36, 48), DType.BF16)
    wide = compute("wide", (36, 48), lambda row, column: cast(w[row, column], DType.F32))
    made = compute("y", (rows, 48), lambda r, c: sum_over(x[r, terms] * wide[terms, c], terms))
    workload = program(made, constants=("w",))
    first, *others = sketches_of(state_of(workload), AVX2, algorithms=False)
    assert (first.name == "tile, columns packed") == (rows == 128)
    inlined = {s.stage for each in others for s in each.trace if isinstance(s, ComputeInline)}
    assert ("wide" in inlined) == (rows == 40)
    arrays = RANDOM.standard_normal((rows, 36)).astype(np.float32), RANDOM.standard_normal((36, 48))
    case = workload, (arrays[0], arrays[1].astype(bfloat16))
    check_schedule(case, format_trace(first.bound(first.defaults)), TARGET)


def tiled(sketch: Sketch) -> bool:
    steps = (step for step in sketch.trace if isinstance(step, Tensorize))
    return any(step.intrinsic.startswith("mmla") for step in steps)


TILED: dict[str, Callable[[], Graph]] = {
    **{name: CASES[name] for name in ("rows that divide", "rows that do not", "many columns")},
    **{name: CASES[name] for name in ("moved results", "every second pixel", "windows")},
    "two rows": lambda: product((2, 8), 4),
    "a batch of odd rows": lambda: product((3, 7, 40), 44),
    "signed data": lambda: product((9, 24), 12, dtype=DType.I8),
    "seven pixels": lambda: image(7, 24, 20, 3),
}


@pytest.mark.parametrize("name", some_of(TILED, 4, "tiles"))
@pytest.mark.drawn
def test_arm_multiplies_rows_by_columns(name: str) -> None:
    case = only(TILED[name](), I8MM)
    first, *_ = heuristic_sketches(state_of(case[0]), I8MM)
    assert first.name == "tiles of short numbers"
    assert tiled(first)
    generator = np.random.default_rng(1)
    rows = [[int(generator.integers(len(c.values))) for c in first.choices] for _ in range(20)]
    others = [first.decisions_of(tuple(row)) for row in rows]
    for decisions in (first.defaults, *[each for each in others if first.is_valid(each)][:2]):
        check_schedule(case, format_trace(first.bound(decisions)), TARGET)


@settings(max_examples=8)
@given(
    rows=integers(2, 21),
    terms=integers(1, 9),
    columns=integers(1, 9),
    dtype=sampled_from((DType.U8, DType.I8)),
)
def test_products_of_any_size(rows: int, terms: int, columns: int, dtype: DType) -> None:
    case = only(product((rows, 8 * terms), 4 * columns, dtype=dtype), I8MM)
    first, *_ = heuristic_sketches(state_of(case[0]), I8MM)
    assert tiled(first)
    check_schedule(case, format_trace(first.bound(first.defaults)), TARGET)


@pytest.mark.parametrize("shape", [((1, 64), 32), ((8, 60), 32)])
def test_one_row_and_odd_groups_are_multiplied_by_vectors(shape: Any) -> None:
    case = only(product(*shape), I8MM)
    (sketch,) = heuristic_sketches(state_of(case[0]), I8MM)
    assert sketch.name == "products of short numbers"


def guarded_calls(statement: Stmt, guards: int = 0) -> Iterator[tuple[Call, int]]:
    """The calls of intrinsics, each with the number of conditions around it."""
    if isinstance(statement, Call):
        yield statement, guards
        return
    for child in children_of(statement):
        yield from guarded_calls(child, guards + isinstance(statement, If))


@pytest.mark.parametrize("target", [VNNI, I8MM], ids=str)
def test_nothing_is_read_behind_the_last_of_open_rows(target: CpuTarget) -> None:
    b = GraphBuilder("open")
    x = b.input("x", (named_size("n", 1, 40), 64), DType.U8)
    sums = b.add("matmul_integer", x, b.constant(codes(64, 32)))
    (workload,) = prepare(b.finish([b.add("cast", sums, to=DType.F32)]), target).workloads
    program = loop_program(
        workload, Chooser(Setting(target, 1)).unmeasured(workload).schedule, target
    )
    calls = list(guarded_calls(program.body))
    assert calls
    for call, guards in calls:
        assert call.intrinsic.startswith("dot4")
        assert guards >= 1
        assert not any(isinstance(part, If) for part in walk(call.meaning))


def test_guarded_loops_of_an_intrinsic_run_as_loops() -> None:
    inner = tile_of_bytes(SHORT_PRODUCTS[3], 8, 4)
    (call,) = (part for part in walk(inner.body) if isinstance(part, Call))
    (row, *_) = (part for part in walk(call.meaning) if isinstance(part, For))
    guarded = replace(row, body=If(row.var + k < 3, row.body))
    source = replace(inner, body=For(k, 3, row.kind, replace(call, meaning=guarded)))
    assert not any(isinstance(part, Call) for part in walk(expand_guarded_calls(source).body))
    assert expand_guarded_calls(inner) == inner


def test_it_is_chosen_without_asking_the_model() -> None:
    (workload, _) = only(product((24, 64), 64))
    chosen = Chooser(Setting(VNNI, 2)).unmeasured(workload)
    assert chosen.trace == default_trace(state_of(workload), VNNI)


def is_tensorized(graph: Graph) -> bool:
    return any(isinstance(step, Tensorize) for step in default_trace(state(graph), VNNI))


@pytest.mark.parametrize("shape", [((8, 66), 32), ((8, 64), 20)])
def test_terms_and_columns_that_the_instruction_does_not_take(shape: Any) -> None:
    assert not is_tensorized(product(*shape))


def test_what_is_stored_in_another_order_is_multiplied_so_too() -> None:
    b = GraphBuilder("parts")
    x = b.input("x", (8, 64), DType.U8)
    sums = b.add("cast", b.add("matmul_integer", x, b.constant(codes(64, 32))), to=DType.F32)
    parts = b.add("reshape", sums, shape=(8, 2, 16))
    halves = [
        b.add("slice", parts, starts=(n,), ends=(n + 1,), axes=(1,), steps=(1,)) for n in (0, 1)
    ]
    assert is_tensorized(b.finish(halves))


def test_weights_that_are_computed_are_not_packed() -> None:
    b = GraphBuilder("computed")
    x, w = b.input("x", (8, 64), DType.U8), b.input("w", (64, 32), DType.I8)
    assert not is_tensorized(b.finish([b.add("matmul_integer", x, w)]))


def test_other_targets_have_other_rules() -> None:
    for target in (AVX2, AVX512):
        trace = default_trace(state(product((24, 64), 64)), target)
        assert not any(isinstance(step, Tensorize) for step in trace)
