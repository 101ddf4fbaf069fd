"""The schedules of a space compute what their workload means: by rule and sampled, compiled."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np
import pytest
from tests.draws import random_source, some_of
from tests.targets import AVX2, AVX512, native_target
from tests.unit.tuning.compiled import Case, check_schedule, workloads

from tensorwright.base import CpuTarget, DType, TargetKind, missing_here
from tensorwright.expr import Decision
from tensorwright.graph import Graph, GraphBuilder
from tensorwright.schedule import ScheduleState, Split, format_trace, state_of
from tensorwright.tuning.space import Sketch, Space, heuristic_sketches, sketches_of, space_of
from tensorwright.tuning.space.defaults.pointwise import pointwise_sketches
from tensorwright.tuning.space.sketch import SketchBuilder

TARGETS = {"avx2": AVX2, "avx512": AVX512}
NATIVE = native_target()


def _weight(builder: GraphBuilder, *shape: int, dtype: DType = DType.F32) -> str:
    numbers = np.random.default_rng(1).normal(size=shape)
    return builder.constant((numbers * (1 if dtype.is_float else 3)).astype(dtype.numpy))


def one(
    operator: str,
    *shapes: tuple[int, ...],
    dtype: DType = DType.F32,
    weights: tuple[tuple[int, ...], ...] = (),
    then: str = "",
    **attributes: object,
) -> Callable[[], Graph]:
    """A graph of one operator on inputs and constants, perhaps with one behind it."""

    def make() -> Graph:
        builder = GraphBuilder(operator)
        inputs = [builder.input(f"x{n}", shape, dtype) for n, shape in enumerate(shapes)]
        inputs += [_weight(builder, *shape, dtype=dtype) for shape in weights]
        result = builder.add(operator, *inputs, **attributes)
        return builder.finish((builder.add(then, result) if then else result,))

    return make


def gather() -> Graph:
    builder = GraphBuilder("gather")
    table, place = builder.input("table", (11, 20)), builder.input("place", (7,), DType.I64)
    return builder.finish((builder.add("gather", table, place, axis=0),))


def to_bytes() -> Graph:
    builder = GraphBuilder("to_bytes")
    x = builder.input("x", (5, 33), DType.I32)
    return builder.finish((builder.add("cast", builder.add("add", x, x), to=DType.I8),))


def scores() -> Graph:
    """Softmax over keys of the products of queries and keys, heads between length and features."""
    builder = GraphBuilder("scores")
    queries, keys = (builder.input(name, (1, 18, 9, 12)) for name in ("queries", "keys"))
    queries = builder.add("transpose", queries, perm=(0, 2, 1, 3))
    keys = builder.add("transpose", keys, perm=(0, 2, 3, 1))
    return builder.finish((builder.add("softmax", builder.add("matmul", queries, keys)),))


NETWORKS: dict[str, Callable[[], Graph]] = {
    "matmul_odd": one("matmul", (13, 19), weights=((19, 23),), then="relu"),
    "matmul_of_inputs": one("matmul", (17, 9), (9, 35)),
    "matmul_wide": one("matmul", (1, 40), weights=((40, 70),)),
    "matmul_thin": one("matmul", (45, 31), weights=((31, 3),)),
    "matmul_batched": one("matmul", (3, 10, 12), (3, 12, 18)),
    "matmul_of_wide_inputs": one("matmul", (27, 130), (130, 530), then="relu"),
    "matmul_of_wide_batches": one("matmul", (2, 25, 128), (2, 128, 515)),
    "gemm_transposed": one("gemm", (18, 11), (21, 18), trans_a=True, trans_b=True),
    "matmul_f64": one("matmul", (9, 10), (10, 21), dtype=DType.F64),
    "matmul_i32": one("matmul", (9, 10), (10, 21), dtype=DType.I32),
    "conv1d": one("conv", (1, 6, 29), weights=((10, 6, 3),), pads=(1, 1)),
    "conv2d": one("conv", (1, 3, 11, 13), weights=((9, 3, 3, 3),), pads=(1,) * 4, then="relu"),
    "conv2d_blocked": one("conv", (1, 32, 9, 9), weights=((32, 32, 3, 3),), pads=(1,) * 4),
    "conv2d_strided": one("conv", (2, 16, 10, 10), weights=((32, 16, 1, 1),), strides=(2, 2)),
    "conv3d": one("conv", (1, 4, 5, 6, 7), weights=((8, 4, 3, 3, 3),), pads=(1,) * 6),
    "conv_depthwise": one(
        "conv", (1, 32, 9, 11), weights=((32, 1, 3, 3),), pads=(1,) * 4, groups=32
    ),
    "conv_of_one_position": one(
        "conv", (1, 32, 1, 1), weights=((32, 1, 5, 5),), pads=(2,) * 4, groups=32, then="relu"
    ),
    "conv_grouped": one("conv", (1, 16, 7, 7), weights=((32, 8, 3, 3),), groups=2),
    "max_pool": one("max_pool", (1, 16, 11, 11), kernel=(3, 3), strides=(2, 2), pads=(1,) * 4),
    "average_pool": one("average_pool", (2, 5, 9, 9), kernel=(2, 2), strides=(2, 2)),
    "global_average_pool": one("global_average_pool", (1, 32, 7, 7)),
    "softmax": one("softmax", (9, 37)),
    "softmax_middle": one("softmax", (4, 9, 17), axis=1),
    "layer_norm": one("layer_norm", (10, 48), weights=((48,), (48,))),
    "attention": one("attention", (1, 2, 12, 16), (1, 2, 12, 16), (1, 2, 12, 16)),
    "attention_heads": one("attention", (1, 8, 14, 20), (1, 8, 34, 20), (1, 8, 34, 20)),
    "attention_one_row": one("attention", (1, 8, 1, 20), (1, 8, 34, 20), (1, 8, 34, 20)),
    "scores": scores,
    "turned_beside_ones": one("transpose", (1, 20, 3, 18), perm=(3, 2, 1, 0)),
    "sum_of_all": one("reduce_sum", (40, 600), keepdims=False),
    "max_of_rows": one("reduce_max", (23, 50), axes=(1,)),
    "mean_of_columns": one("reduce_mean", (23, 50), axes=(0,)),
    "argmax": one("argmax", (9, 33), axis=1),
    "transpose": one("transpose", (18, 7, 21), perm=(2, 0, 1)),
    "tanh": one("tanh", (3, 5, 70)),
    "logic": one("and", (40, 41), (40, 41), dtype=DType.BOOL),
    "gather": gather,
    "to_bytes": to_bytes,
}


@functools.cache
def cases(name: str, target_name: str, blocked: bool) -> tuple[Case, ...]:
    return workloads(NETWORKS[name](), TARGETS[target_name], blocked=blocked)


def space(case: Case, target: CpuTarget) -> Space:
    return space_of(state_of(case[0]), target)


def needs(target_name: str) -> CpuTarget:
    target = TARGETS[target_name]
    if missing_here(target):
        pytest.skip(f"this machine has no {target_name}")
    return target


@pytest.mark.parametrize("target_name", TARGETS)
@pytest.mark.parametrize("name", some_of(NETWORKS, 6, "schedules"))
@pytest.mark.drawn
def test_schedules_are_right(name: str, target_name: str) -> None:
    target = needs(target_name)
    source = random_source(name)
    blocked = target_name == "avx512" or "blocked" in name
    found = cases(name, target_name, blocked)
    assert found
    for case in found:
        choices = space(case, target)
        check_schedule(case, format_trace(choices.default_trace), target)
        sketch = source.choice(choices.sketches)
        decisions = sketch.sample(source)
        assert sketch.is_valid(decisions)
        check_schedule(case, format_trace(sketch.bound(decisions)), target)


@pytest.mark.parametrize("name", ["matmul_odd", "conv2d_blocked", "conv_depthwise", "attention"])
@pytest.mark.drawn
def test_more_samples_are_right(name: str) -> None:
    target = needs("avx2")
    source = random_source(name)
    for case in cases(name, "avx2", True):
        for sketch in space(case, target).sketches:
            trace = format_trace(sketch.bound(sketch.sample(source)))
            check_schedule(case, trace, target)
            check_schedule(case, trace, target, threads=1)


@pytest.mark.parametrize("name", NETWORKS)
def test_decisions_are_data(name: str) -> None:
    for case in cases(name, "avx512", True):
        choices = space(case, TARGETS["avx512"])
        assert choices.size == sum(sketch.size for sketch in choices.sketches) >= 1
        for sketch in choices.sketches:
            names = {name for choice in sketch.choices for name in choice.names}
            assert set(re.findall(r"\?(\w+)", format_trace(sketch.trace))) == names
            assert sketch.is_valid(sketch.defaults)
            assert "?" not in format_trace(sketch.bound(sketch.defaults))
            for choice in sketch.choices:
                assert choice.default in choice.values
                assert list(choice.values) == sorted(set(choice.values))


@pytest.mark.drawn
def test_tiles_stay_within_the_registers() -> None:
    (case,) = cases("conv2d_blocked", "avx2", True)[:1]
    source = random_source(0)
    state = state_of(case[0])
    for sketch in heuristic_sketches(state, AVX2):
        (limit,) = sketch.limits
        assert limit.most == AVX2.vector_registers - 1  # where an element is spread
        for _ in range(50):
            drawn = sketch.sample(source)
            held = drawn.get("columns", 1) * drawn.get("rows", 1) * drawn.get("more_rows", 1)
            assert held + drawn.get("columns", 1) <= limit.most


@pytest.mark.parametrize(
    "make", [NETWORKS["conv2d_blocked"], one("reduce_sum", (4000, 600), keepdims=False)]
)
def test_sketches_are_made_when_they_are_asked_for(
    make: Callable[[], Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    state = state_of(workloads(make(), AVX512, blocked=True)[0][0])
    by_rule = heuristic_sketches(state, AVX512)
    usual, made = SketchBuilder.sketch, []

    def counted(self: SketchBuilder, name: str, family: str = "") -> Sketch:
        made.append(name)
        return usual(self, name, family)

    monkeypatch.setattr(SketchBuilder, "sketch", counted)
    asked = sketches_of(state, AVX512)
    assert next(asked) == by_rule[0]
    assert made == [by_rule[0].name]
    assert [next(asked) for _ in by_rule[1:]] == [*by_rule[1:]] != []


@pytest.mark.parametrize(("good", "names"), [(0, ["plain loops"]), (1, ["pointwise"])])
def test_where_a_rule_takes_an_illegal_step_a_network_compiles_and_it_is_said(
    good: int, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty(state: ScheduleState, target: CpuTarget) -> Iterator[Sketch]:
        yield from islice(pointwise_sketches(state, target), good)
        SketchBuilder(state).do(Split(state.outputs[0], "nowhere", (8,)))

    case = cases("transpose", "avx512", True)[0]
    monkeypatch.setattr("tensorwright.tuning.space.space.HEURISTICS", {TargetKind.CPU: (faulty,)})
    with pytest.warns(RuntimeWarning, match=r"took an illegal step: .*nowhere[\s\S]*report it"):
        found = heuristic_sketches(state_of(case[0]), NATIVE)
    assert [sketch.name for sketch in found] == names
    check_schedule(case, format_trace(found[0].bound(found[0].defaults)), NATIVE)


def test_a_workload_of_one_choice_has_no_decisions() -> None:
    (case,) = cases("sum_of_all", "avx512", True)
    for step in space(case, TARGETS["avx512"]).default_trace:
        assert Decision not in {type(value) for value in getattr(step, "factors", ())}
