"""The sizes for which an open network is tuned."""

from __future__ import annotations

import pytest

from tensorwright.base import UsageError
from tensorwright.expr import Index, named_size, named_sizes_of
from tensorwright.graph import SizesAt, between, points_of

SIZES = named_sizes_of(
    named_size("batch", greatest=16), named_size("length", least=8, greatest=512, divisor=8)
)
(ROWS,) = named_sizes_of(named_size("rows", greatest=512))


def texts(at: SizesAt | None) -> list[str]:
    return [str(point) for point in points_of(SIZES, at)]


def test_several_numbers_make_all_combinations() -> None:
    assert texts({"batch": (1, 4), "length": (8, 64)}) == [
        "batch=1,length=8",
        "batch=1,length=64",
        "batch=4,length=8",
        "batch=4,length=64",
    ]


def test_several_mappings_are_added_up() -> None:
    assert texts([{"batch": 1, "length": 8}, {"batch": 2, "length": 16}]) == [
        "batch=1,length=8",
        "batch=2,length=16",
    ]


def test_sizes_that_are_not_named_are_usual() -> None:
    assert texts({"length": 64}) == ["batch=1,length=64"]
    assert texts({"batch": 2}) == ["batch=2,length=176"]
    assert texts({"length": (8, 64)}) == ["length=8", "length=64"]
    assert [each.values["batch"] for each in points_of(SIZES, {"length": (8, 64)})] == [1, 1]


def test_a_point_that_is_named_twice_counts_twice() -> None:
    (point, other) = points_of((ROWS,), {"rows": (4, 4, 1)})
    assert (point.count, point.values) == (2, {"rows": 4})
    assert other.count == 1


def test_bounds_suggest_points() -> None:
    assert [str(each) for each in points_of((ROWS,), None)] == [
        "rows=1",
        "rows=22",
        "rows=106",
        "rows=512",
    ]
    assert texts(None) == [f"batch=1,length={number}" for number in (8, 64, 176, 512)]
    (batch,) = named_sizes_of(named_size("batch", greatest=16))
    assert [str(each) for each in points_of((batch,), None)] == [
        f"batch={number}" for number in (1, 4, 8, 16)
    ]
    (endless,) = named_sizes_of(named_size("n"))
    assert [str(each) for each in points_of((endless,), None)] == ["n=1", "n=11", "n=128"]


def test_between_points_lie_their_means() -> None:
    points = points_of((ROWS,), {"rows": (32, 1, 2)})
    assert [str(each) for each in between((ROWS,), points)] == ["rows=8"]
    pair = points_of(SIZES, [{"batch": 1, "length": 8}, {"batch": 4, "length": 128}])
    assert [str(each) for each in between(SIZES, pair)] == ["batch=2,length=32"]


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ({"lenght": 8}, "size lenght: there is no such size to tune for"),
        ({"length": 12}, "size length = 12: it is length in 8..512 by 8"),
        ({"batch": (1, 17)}, "size batch = 17: it is batch in 1..16"),
        ({"batch": 0}, "size batch = 0: it is batch in 1..16"),
    ],
)
def test_sizes_that_cannot_be_are_refused(at: SizesAt, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        points_of(SIZES, at)
    assert str(caught.value).startswith(message)


def test_what_loops_decide_is_not_chosen() -> None:
    counted: Index = named_size("trips", greatest=9)
    sizes = (ROWS, *named_sizes_of(counted))
    with pytest.raises(UsageError, match=r"its sizes are rows in 1\.\.512"):
        points_of(sizes, {"trips": 3}, ("trips",))
    assert [str(each) for each in points_of(sizes, {"rows": 2}, ("trips",))] == ["rows=2,trips=5"]
