"""Templates: what each kind of knob may be, which sketches come of them, templates of one's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.targets import AVX512

from tensorwright.base import ScheduleError, UsageError
from tensorwright.expr import compute, placeholder, reduce_axis, sum_over
from tensorwright.schedule import (
    CacheWrite,
    ScheduleState,
    Split,
    Tail,
    Unroll,
    Vectorize,
    initial_state,
)
from tensorwright.tuning.space import Space, SpaceKind, space_of
from tensorwright.tuning.space.knobs import Annotation, Entity, Order, Policy
from tensorwright.tuning.space.templates import (
    INLINE,
    ROOT,
    AtLoop,
    Configuration,
    SketchBuilder,
    Template,
    register_template,
    template,
    template_sketches,
    unregister_template,
)
from tensorwright.tuning.space.templates.configuration import annotations_of, orders_of, split_sizes
from tensorwright.tuning.space.templates.cpu import has_product, open_product

N, M, K = 12, 32, 20


def product(rows: int = N) -> ScheduleState:
    """c = a @ b, b known beforehand."""
    a, b, k = placeholder("a", (rows, K)), placeholder("b", (K, M)), reduce_axis("k", K)
    c = compute("c", (rows, M), lambda i, j: sum_over(a[i, k] * b[k, j], k))
    return initial_state((c,), frozenset({"b"}))


def run(schedule: object, state: ScheduleState | None = None) -> list[str]:
    """The names of the sketches of a template that applies to everything."""
    own = Template("own", schedule, lambda state, target: True)  # type: ignore[arg-type]
    return [sketch.name for sketch in own.sketches(state or product(), AVX512)]


@pytest.mark.parametrize(
    ("extent", "parts", "policy", "expected"),
    [
        (6, 2, Policy.FACTORS, {(1,), (2,), (3,), (6,)}),
        (6, 2, Policy.POWER2, {(1,), (2,), (4,)}),
        (6, 2, Policy.VERBOSE, {(1,), (2,), (3,), (4,), (6,)}),
        (7, 2, Policy.FACTORS, {(1,), (7,)}),
        (4, 3, Policy.FACTORS, {(1, 1), (1, 2), (1, 4), (2, 1), (2, 2), (4, 1)}),
        (5, 3, Policy.POWER2, {(1, 1), (1, 2), (1, 4), (2, 1), (2, 2), (4, 1)}),
        (1, 4, Policy.VERBOSE, {(1, 1, 1)}),
    ],
)
def test_sizes_of_splits(
    extent: int, parts: int, policy: Policy, expected: set[tuple[int, ...]]
) -> None:
    found = list(split_sizes(extent, parts, policy))
    assert set(found) == expected
    assert len(found) == len(expected)


def test_as_many_sizes_as_the_formula_says() -> None:
    """512 = 2**9 in four parts: nine twos shared out among four, 12 over 3."""
    assert len(list(split_sizes(512, 4, Policy.FACTORS))) == 220


def test_orders_of_loops() -> None:
    every = tuple(orders_of("o", ("i", "j", "k"), Order.ALL, (), ()))
    assert every[0] == ("i", "j", "k")
    assert len(every) == len(set(every)) == 6
    chains = (("a", "b"), ("x", "y"))
    merged = set(orders_of("o", ("a", "b", "x", "y"), Order.INTERLEAVE, chains, ()))
    assert len(merged) == 6
    assert all(m.index("a") < m.index("b") and m.index("x") < m.index("y") for m in merged)
    with pytest.raises(UsageError, match="x, i is not an order of i, j"):
        list(orders_of("o", ("i", "j"), Order.CANDIDATES, (), (("x", "i"),)))


def test_annotations_of_loops() -> None:
    none, unroll, vectorize = Annotation
    assert annotations_of(2, frozenset({none, unroll})) == (
        (unroll, unroll),
        (none, unroll),
        (none, none),
    )
    assert set(annotations_of(2, frozenset(Annotation))) == {
        (unroll, vectorize),
        (none, vectorize),
        (unroll, unroll),
        (none, unroll),
        (none, none),
    }
    assert annotations_of(1, frozenset({vectorize})) == ((vectorize,),)


def test_a_product_without_an_axis_for_vectors_is_refused() -> None:
    a, k = placeholder("a", (N, K)), reduce_axis("k", K)
    sums = initial_state((compute("c", (N,), lambda i: sum_over(a[i, k], k)),), frozenset())
    assert not has_product(sums, AVX512)
    s = SketchBuilder(sums)
    with pytest.raises(ScheduleError, match="no vectors fit") as refused:
        open_product(s, Configuration(s, AVX512))
    assert "has_product" in refused.value.remedy


def test_open_knobs_are_decisions_and_structural_ones_give_sketches() -> None:
    def schedule(s: SketchBuilder, cfg: Configuration) -> None:
        axis = s.state.stage("c").tensor.axes[0]
        tile = cfg.define_split("tile_i", axis, 3, filter=lambda sizes: sizes[-1] <= 4)
        tile.apply(s, "c", "i")
        unroll = cfg.define_number("depth", (1, 2, 4), default=2)
        s.do(Split("c", "j", (unroll,)))
        if cfg.define_knob("vectors", (True, False)):
            s.do(Vectorize("c", "j_i"))
            cfg.define_annotate("inner", ("i_2",), ("none", "unroll")).apply(s, "c")

    own = Template("own", schedule, lambda state, target: True)
    sketches = tuple(own.sketches(product(), AVX512))
    assert [sketch.name for sketch in sketches] == [
        "own; vectors True; inner unroll",
        "own; vectors True; inner none",
        "own; vectors False",
    ]
    assert {sketch.family for sketch in sketches} == {"own"}
    first = sketches[0]
    assert [(knob.name, knob.entity) for knob in first.knobs] == [
        ("tile_i", Entity.SPLIT),
        ("depth", Entity.OTHER),
        ("vectors", Entity.OTHER),
        ("inner", Entity.ANNOTATE),
    ]
    assert [knob.is_open for knob in first.knobs] == [True, True, False, False]
    decisions = {"tile_i_1": 3, "tile_i_2": 2, "depth": 4}
    assert [k.bound(decisions) for k in first.knobs] == [(-1, 3, 2), 4, True, ("unroll",)]
    divisors = [(a, b) for a in range(1, 13) for b in range(1, 5) if 12 % (a * b) == 0]
    assert first.size == len(divisors) * 3
    assert first.defaults["depth"] == 2


def test_reorder_and_compute_at_give_sketches() -> None:
    def schedule(s: SketchBuilder, cfg: Configuration) -> None:
        s.do(CacheWrite("c"))
        order = cfg.define_reorder("order", ("i", "j"))
        order.apply(s, "c")
        places = [AtLoop("c", order.loops[0]), ROOT]
        cfg.define_compute_at("place", places).apply(s, "c_cache")

    assert run(schedule) == [
        "own; order 0 1; place c.i",
        "own; order 0 1; place root",
        "own; order 1 0; place c.j",
        "own; order 1 0; place root",
    ]


def test_illegal_combinations_are_left_out() -> None:
    def schedule(s: SketchBuilder, cfg: Configuration) -> None:
        loop = cfg.define_knob("loop", ("k", "nothing", "j"))
        s.do(Unroll("c", loop))

    assert run(schedule) == ["own; loop k", "own; loop j"]


def test_a_template_without_a_legal_schedule_says_so() -> None:
    def schedule(s: SketchBuilder, cfg: Configuration) -> None:
        cfg.define_compute_at("place", (INLINE,)).apply(s, "c")

    with pytest.warns(RuntimeWarning, match="template own has no legal schedule for c"):
        assert run(schedule) == []


def _named_twice(s: SketchBuilder, cfg: Configuration) -> None:
    cfg.define_number("x", (1,))
    cfg.define_number("x", (2,))


def _nothing_left(s: SketchBuilder, cfg: Configuration) -> None:
    cfg.define_split("tile", 12, filter=lambda sizes: False)


def _too_many(s: SketchBuilder, cfg: Configuration) -> None:
    for name in "abcdefgh":  # 256 combinations
        cfg.define_knob(name, (0, 1))


def _bad_policy(s: SketchBuilder, cfg: Configuration) -> None:
    cfg.define_split("tile", 12, policy="factor")


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (_named_twice, "knob x: a knob of this name is defined already"),
        (_nothing_left, "knob tile: it has no values"),
        (_too_many, "template own: its structural knobs have more than 128 combinations"),
        (_bad_policy, "did you mean factors?"),
    ],
)
def test_mistakes_are_told(schedule: object, message: str) -> None:
    with pytest.raises(UsageError) as told:
        run(schedule)
    assert message in str(told.value)


def test_tiles_that_do_not_divide_keep_a_guard() -> None:
    s = SketchBuilder(product(13))
    cfg = Configuration(s, AVX512)
    axis = s.state.stage("c").tensor.axes[0]
    assert cfg.define_split("tile", axis, policy="power2").tail is Tail.GUARD
    assert cfg.define_split("other", axis, policy="factors").tail is Tail.EXACT


@pytest.fixture
def own() -> Iterator[Template]:
    @template(applies=lambda state, target: state.outputs == ("c",))
    def rows_of_c(s: SketchBuilder, cfg: Configuration) -> None:
        cfg.define_split("tile_i", s.state.stage("c").tensor.axes[0]).apply(s, "c", "i")
        s.do(Vectorize("c", "j"))

    yield rows_of_c
    unregister_template("rows_of_c")


def test_ones_own_template_is_first(own: Template) -> None:
    found = [sketch.family for sketch in template_sketches(product(), AVX512)]
    assert found[0] == own.name
    assert "direct" in found
    other = Template(own.name, _named_twice, own.applies)
    with pytest.raises(UsageError, match="a template of this name is registered already"):
        register_template(other)


def test_a_template_that_is_read_again_takes_its_own_place(own: Template) -> None:
    again = Template(own.name, own.schedule, lambda state, target: False)
    register_template(again)
    assert own.name not in {sketch.family for sketch in template_sketches(product(), AVX512)}


def test_an_unknown_template_cannot_be_forgotten(own: Template) -> None:
    with pytest.raises(UsageError, match=r"did you mean rows_of_c\?"):
        unregister_template("rows_of_d")


def test_kinds_of_spaces() -> None:
    usual = space_of(product(), AVX512)
    templates = space_of(product(), AVX512, kind=SpaceKind.TEMPLATES)
    both = space_of(product(), AVX512, kind=SpaceKind.BOTH)
    assert not any(sketch.knobs for sketch in usual.sketches)
    assert all(sketch.knobs for sketch in templates.sketches)
    assert both.sketches[0] == usual.sketches[0]
    assert both.size <= usual.size + templates.size
    assert len(both.sketches) > len(usual.sketches)


def test_where_no_template_applies_sketches_are_tried() -> None:
    x = placeholder("x", (40,))
    state = initial_state((compute("y", (40,), lambda i: x[i] * 2.0),))
    assert space_of(state, AVX512, kind=SpaceKind.TEMPLATES) == space_of(state, AVX512)


def test_a_space_tells_its_size_and_its_knobs() -> None:
    def schedule(s: SketchBuilder, cfg: Configuration) -> None:
        cfg.define_split("tile_i", 12).apply(s, "c", "i")
        s.do(Split("c", "k", (s.choose("depth", (2, 4), 2),)))
        if cfg.define_knob("lanes", (False, True)):
            s.do(Vectorize("c", "j"))

    own = Template("own", schedule, lambda state, target: True)
    space = Space(tuple(own.sketches(product(), AVX512)))
    assert str(space) == (
        "24 schedules, 2 sketches\n"
        "  own: 24 schedules, 2 sketches\n"
        "    tile_i  6 values\n"
        "    lanes   2 values\n"
        "    depth   2 values"
    )
