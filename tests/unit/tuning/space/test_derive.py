"""The derivation: its predicates, rules, sizes of tiles, and rules of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.targets import AVX512
from tests.unit.tuning.helpers import padded_convolution

from tensorwright import schedule
from tensorwright.base import ScheduleError, UsageError
from tensorwright.expr import (
    Compute,
    Fn,
    apply,
    compute,
    max_of,
    placeholder,
    reduce_axis,
    select,
    sum_over,
)
from tensorwright.loop import lower
from tensorwright.tuning.space import derived, heuristic_sketches, space_of
from tensorwright.tuning.space.derived import derive
from tensorwright.tuning.space.derived.rules import skip
from tensorwright.tuning.space.derived.tiled_axes import lane_tiles, row_tiles

X = placeholder("x", (40, 48))


def program(*outputs: Compute, constants: frozenset[str] = frozenset()) -> schedule.ScheduleState:
    return schedule.initial_state(outputs, constants)


def product(rows: int = 64, columns: int = 64, terms: int = 64, name: str = "c") -> Compute:
    a, b = placeholder("a", (rows, terms)), placeholder("b", (terms, columns))
    k = reduce_axis("k", terms)
    return compute(name, (rows, columns), lambda i, j: sum_over(a[i, k] * b[k, j], k))


def relu_of(tensor: Compute, *, transposed: bool = False) -> Compute:
    rows, columns = tensor.shape
    if transposed:
        return compute("relu", (columns, rows), lambda i, j: max_of(tensor[j, i], 0.0))
    return compute("relu", (rows, columns), lambda i, j: max_of(tensor[i, j], 0.0))


# Predicates


def test_what_is_inlined_without_a_second_thought() -> None:
    k = reduce_axis("k", 48)
    plus = compute("plus", X.shape, lambda i, j: X[i, j] + 1.0)
    root = compute("root", X.shape, lambda i, j: apply(Fn.SQRT, X[i, j]))
    edge = compute("edge", X.shape, lambda i, j: select(i < 20, X[i, j], 0.0))
    crossed = compute("crossed", X.shape, lambda i, j: X[i, (i + j) % 48])
    for tensor, by_a_fold, by_one in (
        (plus, True, True),
        (root, False, True),  # expensive: not for every term again
        (edge, False, True),  # a branch
        (crossed, False, True),  # not at a plain place
    ):
        total = compute("total", (40,), lambda i, t=tensor: sum_over(t[i, k], k))
        twice = compute("twice", X.shape, lambda i, j, t=tensor: t[i, j] * 2.0)
        assert derived.is_strict_inlinable(program(total), tensor.name) is by_a_fold
        assert derived.is_strict_inlinable(program(twice), tensor.name) is by_one
        assert not derived.is_strict_inlinable(program(twice), "twice")  # an output
        assert not derived.is_strict_inlinable(program(total), "total")


def test_an_expensive_stage_that_two_read_is_kept() -> None:
    root = compute("root", X.shape, lambda i, j: apply(Fn.EXP, X[i, j]))
    both = compute("both", X.shape, lambda i, j: root[i, j] + root[i, (j + 1) % 48])
    assert not derived.is_strict_inlinable(program(both), "root")


def test_where_operands_are_used_again() -> None:
    k = reduce_axis("k", 48)
    rows = compute("rows", (40,), lambda i: sum_over(X[i, k], k))
    assert derived.has_data_reuse(program(product()), "c")
    assert derived.has_data_reuse(program(product(rows=1)), "c")
    assert not derived.has_data_reuse(program(rows), "rows")
    assert not derived.has_data_reuse(program(relu_of(product())), "relu")


def test_which_readers_can_be_fused() -> None:
    c = product(48, 64)
    shifted = compute("shifted", (48, 64), lambda i, j: c[(i + 1) % 48, j])
    part = compute("part", (40, 64), lambda i, j: c[i, j] + 1.0)
    spread = compute("spread", (48, 64, 2), lambda i, j, n: c[i, j] + 3.0)
    k = reduce_axis("k2", 64)
    total = compute("total", (48,), lambda i: sum_over(c[i, k], k))
    pair = (relu_of(c), compute("more", (48, 64), lambda i, j: c[i, j] + 2.0))
    assert derived.has_fusable_consumer(program(relu_of(c)), "c")
    assert derived.has_fusable_consumer(program(relu_of(c, transposed=True)), "c")
    for reader in (shifted, part, spread, total):
        assert not derived.has_fusable_consumer(program(reader), "c"), reader.name
    assert not derived.has_fusable_consumer(program(*pair), "c")
    assert not derived.has_fusable_consumer(program(c), "c")
    assert not derived.has_fusable_consumer(program(relu_of(c), c), "c")


@pytest.mark.parametrize(
    ("rows", "columns", "terms", "expected"),
    [
        (8, 4, 512, True),
        (8, 8, 64, True),
        (8, 8, 60, False),
        (4, 4, 16, False),
        (16, 8, 512, False),
    ],
)
def test_when_partial_results_pay(rows: int, columns: int, terms: int, expected: bool) -> None:
    state = program(product(rows, columns, terms))
    assert derived.has_more_reduction_parallelism(state, "c") is expected
    assert not derived.has_more_reduction_parallelism(program(relu_of(product())), "relu")


# Rules and the engine


def notes(state: schedule.ScheduleState) -> list[tuple[str, ...]]:
    return [derivation.notes for derivation in derive(state, AVX512)]


def test_what_is_derived_for_a_product() -> None:
    assert notes(program(relu_of(product()))) == [("c fused",), ("c fused",), ("c tiled",)]
    assert notes(program(product())) == [("c cached",), ("c cached",), ("c tiled",)]
    small = notes(program(product(8, 4, 512)))
    assert ("c factored outer", "c_rf tiled") in small
    assert ("c factored inner", "c_rf tiled") in small


def test_nothing_is_derived_twice() -> None:
    again = (*derived.SKETCH_RULES, *derived.SKETCH_RULES)
    state = program(product())
    found = [schedule.format_trace(each.steps) for each in derive(state, AVX512, again)]
    assert len(found) == len(set(found))


def test_small_constants_are_unrolled() -> None:
    base, d, r = placeholder("base", (4, 4)), placeholder("d", (100, 4)), reduce_axis("r", 4)
    out = compute("v", (4, 100), lambda e, n: sum_over(d[n, r] * base[r, e], r))
    (only,) = derived.derived_sketches(program(out, constants=frozenset({"base"})), AVX512)
    assert only.family == "v unrolled"
    steps = list(map(str, only.trace))
    assert "unroll(v, e)" in steps
    assert "unroll(v, r)" in steps


def test_padding_has_a_sketch_for_each_place() -> None:
    state = program(padded_convolution((1, 8, 20, 32), 32), constants=frozenset({"w"}))
    sketches = tuple(derived.derived_sketches(state, AVX512, most=20))
    places = {each.name.rpartition("padded ")[2] for each in sketches}
    assert places == {
        "at the root", "in large tiles", "in small tiles", "in the fold", "inlined"
    }  # fmt: skip
    assert len({each.family for each in sketches}) == 2
    assert all("pack_constant(w, " in schedule.format_trace(each.trace) for each in sketches)


def test_the_space_begins_with_the_schedule_by_rule() -> None:
    state = program(relu_of(product()), constants=frozenset({"b"}))
    by_rule = heuristic_sketches(state, AVX512)
    space = space_of(state, AVX512)
    assert space.sketches[: len(by_rule)] == by_rule
    assert len(space.sketches) > len(by_rule)
    assert len({schedule.format_trace(each.trace) for each in space.sketches}) == len(
        space.sketches
    )
    assert len({each.name for each in space.sketches}) == len(space.sketches)
    assert space.size == sum(each.size for each in space.sketches) > 10_000


def test_defaults_keep_to_the_limits_and_open_decisions_lower() -> None:
    state = program(relu_of(product(60, 100, 90)))
    for sketch in derived.derived_sketches(state, AVX512):
        assert sketch.is_valid(sketch.defaults)
        assert sketch.genes_of(sketch.defaults) is not None
        assert "?c_i_1" in str(lower(schedule.replay(state, sketch.trace)))


# Sizes of tiles


@settings(max_examples=75)
@given(st.integers(2, 700))
def test_sizes_of_rows_divide_or_waste_little(extent: int) -> None:
    sizes = row_tiles(extent)
    assert (1, 1, 1) in sizes
    for row in sizes:
        assert -extent % prod(row) <= 0.15 * extent
        assert prod(row) <= extent
        assert row[-1] <= 28
    if extent > 4:
        assert max(row[-1] for row in sizes) >= 3


@settings(max_examples=75)
@given(st.integers(17, 600))
def test_sizes_of_lanes_are_whole_vectors(extent: int) -> None:
    sizes = lane_tiles(extent, 16)
    assert (1, 1, 16) in sizes
    for row in sizes:
        assert row[-1] % 16 == 0
        assert row[-1] <= 64
        assert prod(row) <= extent
        assert extent % prod(row) == 0 or extent % 16


def test_tiles_stay_inside_a_group() -> None:
    assert all(24 % prod(row) == 0 for row in row_tiles(96, 24))


# Rules of one's own


@pytest.fixture
def keep_in_cache() -> Iterator[derived.SketchRule]:
    @derived.sketch_rule(applies=lambda view: view.current == "relu")
    def cached_relu(view: derived.Derivation) -> tuple[derived.Derivation, ...]:
        builder = view.grow()
        builder.do(schedule.CacheWrite(view.current))
        return (view.then(builder),)

    yield cached_relu
    derived.unregister_sketch_rule("cached_relu")


def test_a_rule_of_ones_own_is_asked_first(keep_in_cache: derived.SketchRule) -> None:
    state = program(relu_of(product()))
    found = tuple(derived.derived_sketches(state, AVX512))
    own = [each for each in found if each.family.startswith("cached_relu")]
    assert own
    assert all(str(each.trace[0]) == "cache_write(relu)" for each in own)
    assert any(each.family == "c fused" for each in found)
    assert own[0] in space_of(state, AVX512).sketches
    with pytest.raises(UsageError, match="registered already"):
        derived.register_sketch_rule(keep_in_cache)


def test_a_rule_can_have_the_last_word() -> None:
    rule = derived.sketch_rule(applies=lambda view: derived.Verdict.YES_AND_SKIP_REST)(
        lambda view: (view.then(view.grow()),)
    )
    try:
        (only,) = derived.derived_sketches(program(relu_of(product())), AVX512)
        assert only.family == "<lambda>, <lambda>"
    finally:
        derived.unregister_sketch_rule(rule.name)
    assert len(list(derived.derived_sketches(program(relu_of(product())), AVX512))) == 3


def test_illegal_steps_end_a_way_quietly() -> None:
    def fail(view: derived.Derivation) -> tuple[derived.Derivation, ...]:
        raise ScheduleError(where="here", step="none", reason="it cannot be done")

    broken = derived.SketchRule("broken", lambda view: True, fail)
    (only,) = derive(program(product()), AVX512, (broken, skip))
    assert only.steps == ()


def test_an_unknown_rule_cannot_be_forgotten() -> None:
    with pytest.raises(UsageError, match="registered: none"):
        derived.unregister_sketch_rule("no such rule")


def test_vectors_lie_along_the_channels_of_a_group() -> None:
    x, w = placeholder("x", (50, 8)), placeholder("w", (4, 64))
    c = reduce_axis("c", 4)
    grouped = compute(
        "grouped", (50, 64), lambda n, o: sum_over(x[n, c + (o // 32) * 4] * w[c, o], c)
    )
    for sketch in derived.derived_sketches(program(grouped), AVX512):
        (lanes,) = (choice for choice in sketch.choices if "grouped_o_3" in choice.names)
        assert all(32 % prod(row) == 0 and row[-1] % 16 == 0 for row in lanes.values)


def test_partial_results_are_factored_again_for_the_lanes() -> None:
    x, i, j = placeholder("x", (256, 256)), reduce_axis("i", 256), reduce_axis("j", 256)
    total = compute("total", (1,), lambda n: sum_over(x[i, j] * x[i, j], i, j))
    families = [each.family for each in derived.derived_sketches(program(total), AVX512)]
    assert families[0] == "total factored outer, total_rf factored inner"
    assert "total factored inner" in families


def test_no_more_is_derived_than_is_asked_for() -> None:
    visited: list[str] = []

    class Watch:
        name = "watch"

        def applies(self, view: derived.Derivation) -> derived.Verdict:
            visited.append(view.current)
            return derived.Verdict.NO

        def derive(self, view: derived.Derivation) -> tuple[derived.Derivation, ...]:
            raise AssertionError

    ways = derive(program(product(8, 4, 512)), AVX512, (Watch(), *derived.SKETCH_RULES))
    assert next(ways).is_complete
    until_the_first = len(visited)
    assert list(ways)
    assert len(visited) > until_the_first
