"""Products and convolutions by AMX: schedules compute what they should, and their code is that of
the instructions. No processor at hand has them: the loops that they stand for run, and Python
does what the instructions do.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any
from typing import cast as cast_to

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.strategies import composite, data, integers, sampled_from
from ml_dtypes import bfloat16
from tests.emulated_tiles import EmulatedTiles
from tests.targets import native_target
from tests.unit.codegen.kernels import run
from tests.unit.tuning.compiled import Case, check_schedule, workloads

import tensorwright
from tensorwright import base
from tensorwright.artifacts import loop_program
from tensorwright.base import (
    SHORT_PRODUCTS,
    CpuTarget,
    DType,
    ShortProduct,
    cpu_target,
    short_product,
)
from tensorwright.codegen.analysis.indices import flat_index
from tensorwright.codegen.llvm import emit
from tensorwright.codegen.llvm.tiles import INSTRUCTIONS
from tensorwright.compile_options import CompileArguments
from tensorwright.expr import (
    Index,
    Reduce,
    cast,
    compute,
    placeholder,
    reduce_axis,
    substitute,
    sum_over,
)
from tensorwright.graph import (
    Graph,
    GraphBuilder,
    Layout,
    build_workload,
    interpret,
    physical_shape,
    program,
    reference,
    to_physical,
)
from tensorwright.graph.passes.quantized import lower_quantized
from tensorwright.loop import Call, For, Role, pack, walk
from tensorwright.machine_code.compilation import assembly
from tensorwright.pipeline import cut, import_graph, open_price
from tensorwright.schedule import Tensorize, format_trace, parse_trace, replay, state_of
from tensorwright.tuning.selection import open_predictor
from tensorwright.tuning.space import Sketch, heuristic_sketches

pytestmark = pytest.mark.target

AMX = cpu_target("x86-64-amx+amx-fp16")
TARGET = native_target()
MATRICES = tuple(each for each in SHORT_PRODUCTS if each.is_matrix)
each_product = pytest.mark.parametrize("product", MATRICES, ids=lambda each: each.intrinsic)


def case(product: ShortProduct, rows: int, terms: int, columns: int, batch: int = 1) -> Case:
    """Rows of short numbers by a constant matrix, doubled; more of them if there is a batch."""
    fold = reduce_axis("t", terms)
    x = placeholder("x", (batch, rows, terms), product.data)
    w = placeholder("w", (terms, columns), product.weights)

    def summed(image: Index, row: Index, column: Index) -> Reduce:
        factors = cast(x[image, row, fold], product.sums), cast(w[fold, column], product.sums)
        return sum_over(factors[0] * factors[1], fold)

    sums = compute("sums", (batch, rows, columns), summed)
    twice = compute("y", (batch, rows, columns), lambda n, i, j: sums[n, i, j] + sums[n, i, j])
    random = np.random.default_rng(rows * columns)
    arrays = []
    for tensor in (x, w):
        drawn = random.integers(-9 if tensor.dtype.is_signed else 0, 10, tensor.shape)
        arrays.append(drawn.astype(tensor.dtype.numpy))
    return program(twice, constants=("w",)), tuple(arrays)


@dataclass(frozen=True)
class Image:
    """A convolution of short numbers, and how its data and its results lie in memory."""

    product: ShortProduct
    batch: int
    size: tuple[int, int]
    channels: int
    filters: int
    window: int
    stride: int
    dilation: int
    pad: int
    groups: int
    layouts: tuple[Layout, Layout]

    def case(self) -> Case:
        data, weights = self.product.data, self.product.weights
        b = GraphBuilder("image")
        shape = self.batch, self.channels, *self.size
        x = b.input("x", shape, data)
        random = np.random.default_rng(self.channels)
        taps = self.filters, self.channels // self.groups, self.window, self.window
        drawn = [
            random.integers(-4 if kind.is_signed else 0, 5, extents).astype(kind.numpy)
            for kind, extents in ((data, shape), (weights, taps))
        ]
        is_float, w = data.is_float, b.constant(drawn[1])
        pair = [b.add("cast", each, to=DType.F32) for each in (x, w)] if is_float else [x, w]
        sums = b.add(
            "conv" if is_float else "conv_integer",
            *pair,
            pads=(self.pad,) * 4,
            strides=(self.stride,) * 2,
            dilations=(self.dilation,) * 2,
            groups=self.groups,
        )
        y = b.add("relu", sums if is_float else b.add("cast", sums, to=DType.F32))
        graph = b.finish([y])
        given = {x, pair[0]}
        placed = {
            name: self.layouts[name not in given]
            for name in graph.types
            if name not in graph.constants and name not in pair[1:]
        }
        graph = replace(graph, layouts=MappingProxyType(placed))
        workload = build_workload(graph, graph.nodes).workload
        held = to_physical(drawn[0], self.layouts[0])
        by_name = {"x": held.reshape(physical_shape(shape, self.layouts[0]))}
        arrays = tuple(by_name.get(tensor.name, drawn[1]) for tensor in workload.inputs)
        return workload, arrays


@composite
def images(draw: Any) -> Image:
    """Convolutions whose channels matrices take; windows are inside the image and its border."""
    groups, window = draw(sampled_from((1, 1, 2))), draw(sampled_from((1, 2, 3)))
    dilation, pad = draw(integers(1, 2)), draw(integers(0, 2))
    channels, filters = (draw(sampled_from((24, 32, 48, 64, 72))) for _ in range(2))
    if draw(integers(0, 3)) == 0:
        channels, groups, window = 3, 1, 7
    least = max(1, (window - 1) * dilation + 1 - 2 * pad)

    def lies(extent: int) -> Layout:
        if extent < 8:
            return Layout()
        blocks = [Layout(1, block) for block in (8, 16, 32, extent) if extent % block == 0]
        return cast_to(Layout, draw(sampled_from((*blocks, Layout(order=(0, 2, 3, 1))))))

    return Image(
        draw(sampled_from(MATRICES)),
        draw(integers(1, 2)),
        (draw(integers(least, max(least, 9))), draw(integers(least + 3, 35))),
        groups * channels // 2 if groups > 1 else channels,
        filters,
        window,
        draw(integers(1, 2)),
        dilation,
        pad,
        groups,
        (lies(channels), lies(filters)),
    )


def matrix_sketches(drawn: Case) -> list[Sketch]:
    sketches = heuristic_sketches(state_of(drawn[0]), AMX)
    return [each for each in sketches if each.name == "matrices of short numbers"]


def matrix_sketch(drawn: Case) -> Sketch:
    return matrix_sketches(drawn)[0]


def check(drawn: Case, source: Any) -> str:
    """A schedule that is drawn: replayed, run as loops, and by the instructions; the schedule."""
    sketch = source.draw(sampled_from(matrix_sketches(drawn)))
    chosen = {each.names[0]: source.draw(sampled_from(each.values))[0] for each in sketch.choices}
    trace = sketch.bound(chosen if sketch.is_valid(chosen) else sketch.defaults)
    text = format_trace(trace)
    replay(state_of(drawn[0]), parse_trace(text))
    check_schedule(drawn, text, TARGET)
    workload, arrays = drawn
    program = loop_program(workload, trace, AMX)
    given = dict(zip((tensor.name for tensor in workload.inputs), arrays, strict=True))
    memory = {
        each.buffer.name: given[each.name]
        if each.packing is None
        else pack(given[each.name], each.packing)
        for each in program.parameters
        if each.role is not Role.OUTPUT
    }
    tiles = EmulatedTiles()
    (found,) = run(program, memory, threads=source.draw(integers(1, 2)), backend=tiles).values()
    tiles.check()
    assert any(name.startswith("tdp") for name in tiles.counts), text
    (wanted,) = reference(workload, arrays)
    assert np.array_equal(found.ravel(), wanted.ravel()), text
    return text


@settings(max_examples=12)
@given(
    product=sampled_from(MATRICES),
    rows=integers(2, 70),
    terms=integers(1, 4),
    columns=sampled_from((12, 16, 32, 40, 48)),
    batch=integers(1, 2),
    source=data(),
)
def test_products_of_any_size(
    product: ShortProduct, rows: int, terms: int, columns: int, batch: int, source: Any
) -> None:
    text = check(case(product, rows, terms * product.run * 3 // 4, columns, batch), source)
    assert product.intrinsic in text


@settings(max_examples=8)
@given(image=images(), source=data())
def test_convolutions_of_any_size(image: Image, source: Any) -> None:
    drawn = image.case()
    if not matrix_sketches(drawn):
        assert image.groups > 1  # a block of results is of several groups
        return
    assert image.product.intrinsic in check(drawn, source)


@each_product
def test_memory_is_what_the_instruction_reads(product: ShortProduct) -> None:
    """In rows of 64 bytes: c[m, n] += a[m, k * terms + i] * b[k, n * terms + i], over k and i."""
    drawn = case(product, 16, 3 * product.run, 16)
    sketch = matrix_sketch(drawn)
    source = loop_program(drawn[0], sketch.bound(sketch.defaults), AMX)
    memory = {"x": drawn[1][0].astype(np.float64)}
    for parameter in source.parameters:
        if parameter.packing is not None:
            packed = pack(drawn[1][1], parameter.packing)
            memory[parameter.buffer.name] = packed.astype(np.float64)
    (call,) = (each for each in walk(source.body) if isinstance(each, Call))
    (terms,) = (each for each in walk(source.body) if isinstance(each, For) and each.body == call)
    sums = np.zeros((16, 16))
    for step in range(3):
        _, first, second, weights = (
            substitute(flat_index(w.buffer, w.indices), {terms.var: step}) for w in call.windows
        )
        run, data = product.run, memory["x"].ravel()
        rows = [data[first + (second - first) * m :][:run] for m in range(16)]
        own = memory[call.windows[-1].buffer.name].ravel()[weights:][: 16 * run]
        a = np.array(rows).reshape(16, 16, product.terms)
        b = own.reshape(16, 16, product.terms)
        sums += np.einsum("mki,kni->mn", a, b)
    x, w = (each.astype(np.float64) for each in drawn[1])
    assert np.array_equal(sums, x[0] @ w)


def code_of(drawn: Case, target: CpuTarget) -> str:
    sketch = matrix_sketch(drawn)
    source = emit(loop_program(drawn[0], sketch.bound(sketch.defaults), target), target)
    return assembly(source.text, target)


@each_product
def test_four_sums_stay_in_tiles_for_all_terms(product: ShortProduct) -> None:
    name = INSTRUCTIONS[product.intrinsic]
    text = code_of(case(product, 96, 8 * product.run, 64), AMX)
    moves = re.findall(rf"\b(ldtilecfg|tilezero|tileloadd|{name}|tilestored|tilerelease)\b", text)
    products = ["tileloadd", "tileloadd", name, "tileloadd", name, "tileloadd", name, name]
    inside = [*["tilezero"] * 4, *products, *["tilestored"] * 4]
    assert moves == ["ldtilecfg", *inside, "tilerelease"]
    assert set(re.findall(rf"{name}\s+%tmm([67]), %tmm([45]), %tmm([0-3])", text)) == {
        ("6", "4", "0"),
        ("7", "4", "1"),
        ("6", "5", "2"),
        ("7", "5", "3"),
    }
    assert name not in code_of(case(product, 96, 8 * product.run, 64), cpu_target("x86-64-avx512"))


def test_each_thread_configures_the_tiles_of_its_share() -> None:
    drawn = case(MATRICES[0], 512, 256, 256)
    sketch = matrix_sketch(drawn)
    text = emit(loop_program(drawn[0], sketch.bound(sketch.defaults), AMX), AMX).text
    (body,) = re.findall(r"define internal void @\w+\.par0\.body\(.*?\n}", text, re.DOTALL)
    for name in ("ldtilecfg", "tilerelease"):
        assert body.count(f"@llvm.x86.{name}(") == text.count(f"call void @llvm.x86.{name}(") == 1
    first_loop = body.index("phi")
    assert body.index("ldtilecfg") < first_loop < body.index("tileloadd64")


def test_rows_that_do_not_divide_are_equal_shares() -> None:
    """Few rows are computed twice: 197 of 16 would be 208, and pairs of 16 would be 224."""
    rows = [
        short_product(step.intrinsic)
        for sketch in matrix_sketches(case(MATRICES[0], 197, 64, 32))
        for step in sketch.trace
        if isinstance(step, Tensorize)
    ]
    assert [each.rows for each in rows if each is not None] == [16, 15]


@pytest.mark.parametrize(("rows", "terms", "columns"), [(1, 64, 32), (32, 46, 32), (32, 64, 3)])
def test_other_sizes_are_multiplied_otherwise(rows: int, terms: int, columns: int) -> None:
    sketches = heuristic_sketches(state_of(case(MATRICES[0], rows, terms, columns)[0]), AMX)
    assert all(each.name != "matrices of short numbers" for each in sketches)


def test_a_price_chooses_among_vectors_pairs_and_matrices() -> None:
    """Matrices for many rows; the same product of one row, or on a processor that has no tiles, by
    pairs; vectors where pairs are slow.
    """
    intrinsics = []
    pairs = cpu_target("x86-64-avx512+avx512bf16")
    slow = replace(pairs, speeds=(("dot2_bf16", 0.5),))
    for target, rows in ((AMX, 197), (AMX, 1), (pairs, 197), (slow, 197)):
        b = GraphBuilder("product")
        x = b.add("cast", b.input("x", (rows, 768), DType.BF16), to=DType.F32)
        w = b.constant(np.ones((768, 768), bfloat16))
        b.add("matmul", x, b.add("cast", w, to=DType.F32), output="y")
        (workload,) = cut(b.finish(["y"]), target, 1).workloads
        predictor = open_predictor(target, 1, is_cold=True)
        price = open_price(target, 1)
        assert predictor is not None
        assert price is not None
        assert price(workload) is not None
        trace = predictor.best(workload).trace
        intrinsics += [[step.intrinsic for step in trace if isinstance(step, Tensorize)]]
    assert intrinsics == [["tile_bf16"], ["dot2_bf16"], ["dot2_bf16"], []]


def matrices_in_a_row() -> tuple[Graph, int]:
    """A network of products, and how many of them matrices multiply at least."""
    random = np.random.default_rng(1)
    b = GraphBuilder("three")
    x = b.input("x", (3, 40, 128))
    for columns in (192, 160, 128):
        w = random.standard_normal((b.type_of(x).shape[-1], columns), np.float32) / np.float32(12)
        x = b.add("relu", b.add("matmul", x, b.constant(w)))
    return b.finish([b.add("neg", x, output="y")]), 2


def bottlenecks() -> tuple[Graph, int]:
    """As RegNet: convolutions of one tap, and of groups, a stride and a sum."""
    random = np.random.default_rng(2)
    b = GraphBuilder("image")

    def convolved(x: str, filters: int, window: int, stride: int = 1, group: int = 0) -> str:
        channels = b.type_of(x).shape[1]
        w = random.standard_normal((filters, group or channels, window, window), np.float32)
        w = b.constant(w / np.float32(np.sqrt(w[0].size)))
        pads, groups = (window // 2,) * 4, channels // group if group else 1
        return b.add("conv", x, w, pads=pads, strides=(stride, stride), groups=groups)

    x = b.add("relu", convolved(b.input("x", (1, 64, 28, 28)), 128, 1))
    y = b.add("relu", convolved(x, 128, 3, 2, 64))
    y = b.add("add", convolved(y, 128, 1), convolved(x, 128, 1, 2))
    y = convolved(b.add("relu", y), 64, 3)
    return b.finish([b.add("neg", y, output="y")]), 4


@pytest.mark.skipif(TARGET.arch != "x86-64", reason="code for another processor")
@pytest.mark.parametrize(("network", "threads"), [(matrices_in_a_row, 2), (bottlenecks, 2)])
def test_a_network_chosen_for_tiles_computes_the_same_without_them(
    network: Callable[[], tuple[Graph, int]], threads: int
) -> None:
    """Choices, packed weights and tensors in bf16 are those of the processor with tiles."""
    held = cpu_target("x86-64-avx2").features
    lacking = tuple(each for each in AMX.features if each not in held)
    emulated = replace(AMX, emulated=lacking)
    graph, least = network()
    with base.override(assume="avx2"):  # whose rates are nominal
        made = tensorwright.compile(graph, target=emulated, precision="bf16", threads=threads)
    assert dict(made.sources)["schedules"].count("tile_bf16") >= least
    shape = graph.types["x"].shape
    given = {"x": np.random.default_rng(1).standard_normal(shape).astype(np.float32)}
    rounded = import_graph(graph, CompileArguments(precision="bf16", target=emulated))
    wanted = interpret(rounded, given)["y"]
    assert np.abs(made.run(given)["y"] - wanted).max() < 0.01 * np.abs(wanted).max()


def test_bytes_of_a_network_are_matrices_too() -> None:
    random = np.random.default_rng(2)
    b = GraphBuilder("bytes")
    x, w = b.input("x", (29, 128), DType.U8), random.integers(-127, 128, (128, 48))
    zero = b.constant(np.array(7, np.uint8))
    sums = b.add("matmul_integer", x, b.constant(w.astype(np.int8)), zero)
    graph = lower_quantized(b.finish([b.add("cast", sums, to=DType.F32)]), AMX)
    drawn = next(each for each in workloads(graph, AMX) if "integer" in str(each[0]))
    trace = format_trace(matrix_sketch(drawn).bound(matrix_sketch(drawn).defaults))
    assert "tile_u8i8_i32" in trace
    check_schedule(drawn, trace, TARGET)


def test_code_for_tiles_is_refused_here_by_name(tmp_path: Path) -> None:
    if "amx-tile" in base.detect_target().features:
        pytest.skip("this processor has them")
    random = np.random.default_rng(0)
    b = GraphBuilder("product")
    x = b.input("x", (64, 512))
    first, last = (b.constant(random.standard_normal((512, 512), np.float32)) for _ in range(2))
    graph = b.finish([b.add("matmul", b.add("relu", b.add("matmul", x, first)), last, output="y")])
    made = tensorwright.compile(graph, target=AMX, precision="bf16", threads=1)
    assert dict(made.sources)["schedules"].count("tile_bf16") == 2
    made.save(tmp_path / "model.tw")
    message = "it has no amx-bf16, amx-fp16, amx-int8, amx-tile"
    with pytest.raises(base.MachineError, match=message):
        tensorwright.load(tmp_path / "model.tw").run({"x": np.zeros((64, 512), np.float32)})


def test_a_kernel_that_refuses_tiles_is_a_machine_without_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flags = frozenset(base.cpu_targets._X86_FEATURES)
    for is_allowed in (True, False):
        monkeypatch.setattr(base.cpu_targets, "may_use_tiles", lambda answer=is_allowed: answer)
        features = base.cpu_targets._usable_x86(flags)
        assert ("amx-tile" in features) == is_allowed
        assert ("amx-bf16" in features) == is_allowed
        assert "avx512bf16" in features
