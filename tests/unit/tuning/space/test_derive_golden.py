"""The two programs by which the derivation is explained, and what it makes of them."""

from __future__ import annotations

from collections.abc import Callable

from tests.targets import AVX512

from tensorwright.expr import Compute, compute, max_of, placeholder, reduce_axis, select, sum_over
from tensorwright.loop import lower
from tensorwright.schedule import At, format_trace, initial_state, replay
from tensorwright.tuning.space import Sketch
from tensorwright.tuning.space.derived import derived_sketches


def matmul_relu() -> Compute:
    """ReLU of a product, 512 x 512 x 512."""
    n = 512
    a, b, k = placeholder("A", (n, n)), placeholder("B", (n, n)), reduce_axis("k", n)
    c = compute("C", (n, n), lambda i, j: sum_over(a[i, k] * b[k, j], k))
    return compute("D", (n, n), lambda i, j: max_of(c[i, j], 0.0))


def padded_product() -> Compute:
    """ReLU of 8 x 400, padded to 8 x 512, times 512 x 4."""
    a, d, k = placeholder("A", (8, 400)), placeholder("D", (512, 4)), reduce_axis("k", 512)
    b = compute("B", (8, 400), lambda i, k: max_of(a[i, k], 0.0))
    c = compute("C", (8, 512), lambda i, k: select(k < 400, b[i, k], 0.0))
    return compute("E", (8, 4), lambda i, j: sum_over(c[i, k] * d[k, j], k))


def steps_of(sketch: Sketch) -> list[str]:
    return list(map(str, sketch.trace))


def test_a_product_is_tiled_and_its_reader_fused(golden: Callable[..., None]) -> None:
    state = initial_state((matmul_relu(),))
    sketches = tuple(derived_sketches(state, AVX512))
    assert [sketch.name for sketch in sketches] == [
        "C fused; C at 2",
        "C fused; C at 1",
        "C tiled",
    ]
    sketch = sketches[0]
    tiled = replay(state, sketch.trace)
    order = ("k_0", "i_o", "j_o", "k_1", "k_2", "k_3", "i_i", "j_i")  # R S R S in the tiles
    assert tiled.stage("C").loops == order
    assert tiled.stage("C").placement == At("D", "j_1")
    assert tiled.stage("D").loops == ("i_0_j_0", "i_1", "j_1", "i_2", "j_2")  # S S around them
    assert sketch.family == sketches[1].family != sketches[2].family
    assert sketch.choices == sketches[1].choices
    golden(f"{sketch.name}\n\n{format_trace(sketch.trace)}\n\n{lower(tiled)}")


def test_a_padded_product(golden: Callable[..., None]) -> None:
    state = initial_state((padded_product(),))
    sketches = tuple(derived_sketches(state, AVX512))
    assert len(sketches) < 10
    found = {sketch.name: steps_of(sketch) for sketch in sketches}
    assert all("compute_inline(B)" in steps for steps in found.values())
    assert any("compute_inline(C)" not in steps for steps in found.values())
    assert any("cache_write(E)" in steps for steps in found.values())
    factors = [step for steps in found.values() for step in steps if step.startswith("rfactor")]
    assert set(factors) == {"rfactor(E, k_o)", "rfactor(E, k_i)"}
    golden("\n\n".join(f"{each.name}\n{format_trace(each.trace)}" for each in sketches))


def test_sketches_of_a_family_share_their_choices() -> None:
    for program in (matmul_relu(), padded_product()):
        families: dict[str, set[frozenset[str]]] = {}
        for sketch in derived_sketches(initial_state((program,)), AVX512):
            tiles = {name for c in sketch.choices if c.node for name in c.names}
            families.setdefault(sketch.family, set()).add(frozenset(tiles))
        assert all(len(names) == 1 for names in families.values())
