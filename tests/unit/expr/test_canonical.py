"""The canonical text: names do not count, everything else does."""

from __future__ import annotations

import hashlib

import pytest
from tests.unit.expr.programs import PROGRAMS, conv2d, matmul

from tensorwright import expr
from tensorwright.base import DType


def layer(
    names: str = "x w b y",
    axes: str = "i j k",
    size: int = 4,
    dtype: DType = DType.F32,
    scale: float = 2.0,
) -> tuple[expr.Compute, expr.Placeholder, expr.Placeholder]:
    x_name, w_name, b_name, y_name = names.split()
    first, second, inner = axes.split()
    x, w = expr.placeholder(x_name, (size, 8), dtype), expr.placeholder(w_name, (8, 3), dtype)
    k = expr.reduce_axis(inner, 8)
    product = expr.compute(
        b_name, (size, 3), lambda a, b: expr.sum_over(x[a, k] * w[k, b], k), names=(first, second)
    )
    y = expr.compute(
        y_name, (size, 3), lambda a, b: product[a, b] * scale + product[0, b], names=(second, first)
    )
    return y, x, w


def test_names_do_not_count():
    y, _, w = layer()
    other, _, w_other = layer("zeta alpha q a", "z b a")
    assert expr.canonical_text([y], {w}) == expr.canonical_text([other], {w_other})


def test_the_order_of_terms_in_an_index_does_not_depend_on_names():
    def window(outer: str, inner: str) -> expr.Compute:
        x, k = expr.placeholder("x", (9,)), expr.reduce_axis(inner, 3)
        return expr.compute("y", (7,), lambda i: expr.sum_over(x[i + k.var], k), names=(outer,))

    assert expr.canonical_text([window("a", "b")]) == expr.canonical_text([window("b", "a")])


def test_the_names_of_gathered_positions_do_not_count():
    def pair(first: str, second: str) -> expr.Compute:
        x = expr.placeholder("x", (20,))
        a, b = expr.placeholder(first, (4,), DType.I64), expr.placeholder(second, (5,), DType.I32)
        return expr.compute(
            "y", (4,), lambda i: x[expr.Element(a, (i,)) % 5 * 4 + expr.Element(b, (i,)) % 4]
        )

    assert expr.canonical_text([pair("a", "b")]) == expr.canonical_text([pair("b", "a")])


def test_the_order_of_construction_does_not_count():
    def branches(is_swapped: bool) -> expr.Compute:
        x, k = expr.placeholder("x", (4, 6)), expr.reduce_axis("k", 6)
        makers = {
            "top": lambda: expr.compute("top", (4,), lambda i: expr.max_over(x[i, k], k)),
            "total": lambda: expr.compute(
                "total", (4,), lambda i: expr.sum_over(expr.exp(x[i, k]), k)
            ),
        }
        order = sorted(makers, reverse=is_swapped)
        made = {name: makers[name]() for name in order}
        return expr.compute("y", (4,), lambda i: made["top"][i] - made["total"][i])

    assert expr.canonical_text([branches(False)]) == expr.canonical_text([branches(True)])


@pytest.mark.parametrize(
    "change", [{"size": 5}, {"dtype": DType.F64}, {"scale": 3.0}], ids=lambda c: next(iter(c))
)
def test_structure_counts(change):
    assert expr.canonical_text([layer()[0]]) != expr.canonical_text([layer(**change)[0]])


def test_constness_counts():
    y, x, w = layer()
    assert len({expr.canonical_text([y], s) for s in (set(), {x}, {w}, {x, w})}) == 4


def test_sharing_an_input_counts():
    x, z = expr.placeholder("x", (3,)), expr.placeholder("z", (3,))
    square = expr.compute("y", (3,), lambda i: x[i] * x[i])
    product = expr.compute("y", (3,), lambda i: x[i] * z[i])
    assert expr.canonical_text([square]) != expr.canonical_text([product])


def test_outputs_count_and_so_does_their_order():
    y, x, _ = layer()
    z = expr.compute("z", (4,), lambda i: x[i, 0])
    assert len({expr.canonical_text(o) for o in ([y], [y, z], [z, y])}) == 3


def test_types_of_constants_count():
    x = expr.placeholder("x", (3,), DType.I32)
    narrow = expr.compute("y", (3,), lambda i: expr.select(x[i] < 1, x[i], 1))
    assert "1:i32" in expr.canonical_text([narrow])


def test_all_programs_differ():
    assert len({expr.canonical_text([program]) for program in PROGRAMS.values()}) == len(PROGRAMS)
    assert expr.canonical_text([conv2d()]) == expr.canonical_text([conv2d()])
    assert expr.canonical_text([conv2d(groups=2)]) != expr.canonical_text([conv2d()])


def test_the_key_stays_what_it_is():
    """Record stores on people's disks hold such keys: change the text only with a migration."""
    key = hashlib.sha256(expr.canonical_text([matmul()]).encode()).hexdigest()
    assert key[:16] == "7c429eec9a73739b"
