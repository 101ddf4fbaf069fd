"""Sketches: sizes, limits and what is drawn."""

from __future__ import annotations

import random
from math import prod

import numpy as np

from tensorwright.expr import Decision, compute, placeholder
from tensorwright.schedule import Split, Tail, initial_state, replay
from tensorwright.tuning.space import Choice, Limit, Sketch, SketchBuilder, Space, factorisations
from tensorwright.tuning.space.sketch import divisors

A, B, C = Choice.of("a", (1, 2, 4, 8), 2), Choice.of("b", (1, 3, 6), 3), Choice.of("c", (1, 2), 1)


def sketch(*limits: Limit) -> Sketch:
    return Sketch("s", (), (A, B, C), limits)


def test_size_counts_what_the_limits_leave() -> None:
    assert sketch().size == 24
    limited = sketch(Limit(Decision("a") * Decision("b"), 6))
    valid = [(a, b) for (a,) in A.values for (b,) in B.values if a * b <= 6]
    assert limited.size == 2 * len(valid)
    assert Space((sketch(), limited)).size == 24 + limited.size


def test_a_limit_counts_several_products() -> None:
    built = builder()
    a, b = built.choose("a", (1, 2, 3), 1), built.choose("b", (1, 2, 4), 1)
    built.limit(2 * a * b + a + 3 * b, 20)
    limited = built.sketch("both")
    valid = [(i, j) for i in (1, 2, 3) for j in (1, 2, 4) if 2 * i * j + i + 3 * j <= 20]
    assert limited.size == len(valid) == 5
    assert limited.is_valid({"a": 3, "b": 1})
    assert not limited.is_valid({"a": 2, "b": 4})


def test_a_tile_that_is_shifted_back_is_no_longer_than_its_loop() -> None:
    built = builder()
    start = built.state
    a, b = built.choose("a", (1, 30, 64), 1), built.choose("b", (1, 2, 5), 1)
    built.do(Split("y", "i", (a, b), Tail.SHIFT))
    shifted = built.sketch("shifted")
    tiles = [(a, b) for a in (1, 30, 64) for b in (1, 2, 5) if a * b <= 64]
    assert shifted.size == len(tiles) == 6
    for tile in tiles:
        replay(start, shifted.bound(dict(zip("ab", tile, strict=True))))


def test_size_is_a_bound_where_counting_takes_long() -> None:
    many = tuple(Choice.of(f"t{n}", tuple(range(1, 21)), 1) for n in range(5))
    limit = Limit(prod(Decision(c.names[0]) for c in many), 100)
    assert Sketch("s", (), many, (limit,)).size == 20**5


def test_samples_are_valid_and_reach_everything_valid() -> None:
    limited = sketch(
        Limit(Decision("a") * Decision("b"), 6), Limit(Decision("b") * Decision("c"), 6)
    )
    source = random.Random(0)
    drawn = [limited.sample(source) for _ in range(400)]
    assert all(limited.is_valid(each) for each in drawn)
    assert len({tuple(each.values()) for each in drawn}) == limited.size
    assert not limited.is_valid({"a": 8, "b": 1, "c": 1})


def test_where_hardly_anything_is_valid_the_choice_by_rule_is_drawn() -> None:
    choices = tuple(Choice.of(f"t{n}", tuple(range(1, 100)), 1) for n in range(4))
    narrow = Sketch("s", (), choices, (Limit(prod(Decision(c.names[0]) for c in choices), 1),))
    assert narrow.sample(random.Random(0)) == narrow.defaults


def builder() -> SketchBuilder:
    x = placeholder("x", (64,))
    return SketchBuilder(initial_state((compute("y", (64,), lambda i: x[i] + 1.0),)))


def test_a_limit_counts_plain_numbers_and_keeps_the_choice_by_rule() -> None:
    growing = builder()
    t = growing.choose("t", (1, 2, 4, 8), 4)
    fixed = growing.choose("only", (2,), 2)
    assert t == Decision("t")
    assert fixed == 2
    growing.limit(t * fixed, 12)
    growing.limit(t, 3)
    growing.limit(fixed, 1)
    growing.do(Split("y", "i", (t,)))
    assert growing.sketch("s").limits == (Limit(2 * Decision("t"), 12), Limit(Decision("t"), 4))


def test_limits_count_what_is_added() -> None:
    limit = Limit(Decision("rows") * Decision("columns") + Decision("columns"), 15)
    kept = {
        (r, c) for r in (3, 4, 6, 7) for c in (2, 3, 4) if limit.holds({"rows": r, "columns": c})
    }
    assert kept == {(3, 2), (4, 2), (6, 2), (3, 3), (4, 3)}
    growing = builder()
    rows = growing.choose("rows", (1, 3, 4, 6, 7), 7)
    columns = growing.choose("columns", (8, 16, 32), 16)
    growing.limit(rows * columns + columns, 8 * 15)
    (made,) = growing.sketch("s").limits
    assert made.value({"rows": 6, "columns": 16}) == 6 * 16 + 16
    assert made.most == 7 * 16 + 16  # the choice by rule stays possible


def test_rows_are_columns_of_a_population() -> None:
    tiles = Choice(("o", "i"), factorisations(12, 2, 4), (3, 4))
    sketch = Sketch("s", (), (tiles, A), (Limit(Decision("i") * Decision("a"), 8),))
    genes = np.array([[n, m] for n in range(len(tiles.values)) for m in range(len(A.values))])
    columns = sketch.columns(genes)
    valid = sketch.valid(genes)
    for number, row in enumerate(genes):
        decisions = sketch.decisions_of(tuple(int(gene) for gene in row))
        assert decisions == {name: int(column[number]) for name, column in columns.items()}
        assert sketch.is_valid(decisions) == valid[number]
        assert sketch.genes_of(decisions) == tuple(row)
    assert sketch.genes_of({"o": 5, "i": 1, "a": 1}) is None
    assert sketch.genes_of({"a": 1}) is None
    assert sketch.size == int(valid.sum())


def test_divisors_of_large_and_small_numbers() -> None:
    for number in (1, 12, 36, 97):
        for most in (1, 5, 6, 100):
            whole = [n for n in range(1, min(number, most) + 1) if number % n == 0]
            assert divisors(number, most) == tuple(whole)
    assert divisors(2**40, 2**40) == tuple(2**n for n in range(41))


def test_factorisations_divide_or_waste_little() -> None:
    exact = factorisations(12, 2, 3)
    assert exact == ((1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (4, 1),
                     (4, 3), (6, 1), (6, 2), (12, 1))  # fmt: skip
    assert factorisations(7, 1, 7) == ((1,), (7,))
    assert factorisations(7, 1, 7, waste=0.2) == ((1,), (2,), (4,), (7,))
