"""Products of matrices by AMX: their schedules compute what they should, and their code is that of
the instructions. No processor at hand has them: the loops that they stand for run.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.strategies import data, integers, sampled_from
from ml_dtypes import bfloat16
from tests.targets import native_target
from tests.unit.tuning.compiled import Case, check_schedule, workloads

import tensorwright
from tensorwright import base
from tensorwright.artifacts import loop_program
from tensorwright.base import SHORT_PRODUCTS, CpuTarget, DType, ShortProduct, cpu_target
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
from tensorwright.graph import GraphBuilder, interpret, program
from tensorwright.graph.passes.quantized import lower_quantized
from tensorwright.loop import Call, For, pack, walk
from tensorwright.machine_code.compilation import assembly
from tensorwright.pipeline import cut, import_graph, open_price
from tensorwright.schedule import Tensorize, format_trace, parse_trace, replay, state_of
from tensorwright.tuning.selection import open_predictor
from tensorwright.tuning.space import Sketch, heuristic_sketches

pytestmark = pytest.mark.target

AMX = cpu_target("x86-64-amx")
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
        arrays.append(drawn.astype(bfloat16 if tensor.dtype.is_float else tensor.dtype.numpy))
    return program(twice, constants=("w",)), tuple(arrays)


def matrix_sketch(drawn: Case) -> Sketch:
    first = heuristic_sketches(state_of(drawn[0]), AMX)[0]
    assert first.name == "matrices of short numbers"
    return first


@settings(max_examples=12)
@given(
    product=sampled_from(MATRICES),
    rows=integers(16, 70),
    terms=integers(1, 4),
    columns=integers(1, 5),
    batch=integers(1, 2),
    source=data(),
)
def test_products_of_any_size(
    product: ShortProduct, rows: int, terms: int, columns: int, batch: int, source: Any
) -> None:
    drawn = case(product, rows, terms * product.run, 16 * columns, batch)
    sketch = matrix_sketch(drawn)
    chosen = {each.names[0]: source.draw(sampled_from(each.values))[0] for each in sketch.choices}
    decisions = chosen if sketch.is_valid(chosen) else sketch.defaults
    trace = format_trace(sketch.bound(decisions))
    assert product.intrinsic in trace
    replay(state_of(drawn[0]), parse_trace(trace))
    check_schedule(drawn, trace, TARGET)


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
    moves = re.findall(rf"\b(ldtilecfg|tileloadd|{name}|tilestored|tilerelease)\b", text)
    products = ["tileloadd", "tileloadd", name, "tileloadd", name, "tileloadd", name, name]
    inside = [*["tileloadd"] * 4, *products, *["tilestored"] * 4]
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


@pytest.mark.parametrize(("rows", "terms", "columns"), [(15, 64, 32), (32, 48, 32), (32, 64, 24)])
def test_other_sizes_are_multiplied_otherwise(rows: int, terms: int, columns: int) -> None:
    sketches = heuristic_sketches(state_of(case(MATRICES[0], rows, terms, columns)[0]), AMX)
    assert all(each.name != "matrices of short numbers" for each in sketches)


def test_a_price_chooses_among_vectors_pairs_and_matrices() -> None:
    """Matrices for many rows; the same product of few rows, or on a processor that has no tiles,
    by pairs.
    """
    intrinsics = []
    targets = (AMX, 197), (AMX, 20), (cpu_target("x86-64-avx512+avx512bf16"), 197)
    for target, rows in targets:
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
        intrinsics += [step.intrinsic for step in trace if isinstance(step, Tensorize)]
    assert intrinsics == ["tile_bf16", "dot2_bf16", "dot2_bf16"]


@pytest.mark.skipif(TARGET.arch != "x86-64", reason="code for another processor")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_network_chosen_for_tiles_computes_the_same_without_them(threads: int) -> None:
    """Choices, packed weights and tensors in bf16 are those of the processor with tiles."""
    held = cpu_target("x86-64-avx2").features
    lacking = tuple(each for each in AMX.features if each not in held)
    emulated = replace(AMX, emulated=lacking)
    random = np.random.default_rng(1)
    b = GraphBuilder("three")
    x = b.input("x", (3, 40, 128))
    for columns in (192, 160, 128):
        w = random.standard_normal((b.type_of(x).shape[-1], columns), np.float32) / np.float32(12)
        x = b.add("relu", b.add("matmul", x, b.constant(w)))
    graph = b.finish([b.add("neg", x, output="y")])
    with base.override(assume="avx2"):  # whose rates are nominal
        made = tensorwright.compile(graph, target=emulated, precision="bf16", threads=threads)
    assert dict(made.sources)["schedules"].count("tile_bf16") >= 2
    given = {"x": random.standard_normal((3, 40, 128), np.float32)}
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
    message = "it has no amx-bf16, amx-int8, amx-tile"
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
