"""Bounds that decide a question about sizes."""

from __future__ import annotations

import pytest

from tensorwright.expr import Condition, Relation, compare, minimum, named_size
from tensorwright.ops.named_sizes import deciding_bounds

n, batch, wide = named_size("n"), named_size("batch"), named_size("wide", 4, 64, 4)


@pytest.mark.parametrize(
    ("question", "bounds"),
    [
        (compare(Relation.EQ, n, minimum(n, 512)), "n=..512"),
        (compare(Relation.LE, 1, (n + 128) // 160 - 3), "n=512.."),
        (compare(Relation.EQ, 2 * ((n + 3) // 4), (n + 1) // 2), "n=4.. by 4"),
        (compare(Relation.EQ, (n + 15) // 16, 2 * ((n + 31) // 32)), "n=32.. by 32"),
        (compare(Relation.EQ, 12 * n, 12 * batch * n), "batch=1"),
        (compare(Relation.EQ, n, batch), "n=batch"),
        (compare(Relation.EQ, n, 7), "n=7"),
        (compare(Relation.EQ, n // 2, 0), "n=2.."),
        (compare(Relation.LE, batch, 1), "batch=2.."),
        (compare(Relation.LE, 40, wide), "wide=40..64 by 4"),
        (compare(Relation.EQ, wide % 24, 0), "wide=24..48 by 24"),
        (compare(Relation.EQ, n * n, batch + 3), ""),
    ],
)
def test_the_widest_bounds_that_decide(question: Condition, bounds: str) -> None:
    assert deciding_bounds(question) == bounds
