"""Sizes as text, and the numbers that sizes get when nobody names them."""

from __future__ import annotations

import pytest

from tensorwright.base import Formula, SizeBounds, batch_sizes, usual_numbers


@pytest.mark.parametrize(
    ("shapes", "batches"),
    [
        ([("batch", 3, "height", "width")], {"batch"}),
        ([("N", 3, 224, 224)], {"N"}),
        ([("s0", "s1"), ("s0", "s1")], {"s0"}),
        ([("unk_1", 64), ("unk_1",)], {"unk_1"}),
        ([("seq", "batch_size", 64)], {"batch_size"}),
        ([("sequence", 64)], set()),
        ([("num_tokens", 64)], set()),
        ([("n", "n")], set()),
        ([("n", 3), (3, "n")], set()),
        ([("n",)], set()),
        ([(Formula("2*n"), 8)], set()),
        ([("b", Formula("past + seq")), (1, "past"), (1, "seq")], {"b"}),
    ],
)
def test_a_batch_is_told_by_its_name_or_its_position(
    shapes: list[tuple[object, ...]], batches: set[str]
) -> None:
    names = {name for shape in shapes for each in shape for name in Formula(str(each)).names}
    assert batch_sizes(shapes, names) == batches


def test_usual_numbers_are_between_the_bounds() -> None:
    rows = {"batch": (1, 64, 1), "pairs": (4, None, 4), "seq": (1, None, 1), "rows": (8, 512, 8)}
    bounds = {name: SizeBounds(*row) for name, row in rows.items()}
    numbers = usual_numbers(bounds, [("batch", "seq"), ("pairs", "rows")])
    assert numbers == {"batch": 1, "pairs": 4, "seq": 128, "rows": 176}
    assert usual_numbers({"batch": SizeBounds(0, 8, 2)}, ()) == {"batch": 2}
