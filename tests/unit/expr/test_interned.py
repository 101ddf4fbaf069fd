"""Equal index expressions are one object, and go with their last holder."""

import copy
import gc
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from tensorwright.expr import Decision, Element, Poly, Range, Var, all_of, placeholder, simplify
from tensorwright.expr.symbolic import Interned

LOOP, F = Var("i"), Decision("f")


def test_equal_expressions_are_one_object() -> None:
    assert Var("i") is LOOP
    assert LOOP * 3 + F is F + 3 * LOOP
    assert Poly(terms=(((LOOP,), 2),)) is LOOP * 2
    assert (LOOP // F) % 4 is (Var("i") // Decision("f")) % 4
    assert all_of(LOOP < F, F <= LOOP + 3) is all_of(Var("i") < F, F <= LOOP + 3)
    assert Range(0, F - 1) is Range.of_extent(Decision("f"))
    table = placeholder("t", (4,))
    assert Element(table, (LOOP,)) is Element(table, (Var("i"),))


def test_kinds_with_the_same_fields_stay_apart() -> None:
    assert Var("f") != Decision("f")
    assert (LOOP // 3) != (LOOP % 3)


def test_copies_are_the_object_itself() -> None:
    expression = simplify((LOOP * F + Var("j")) // 7, {LOOP: Range(0, 5)})
    condition = all_of(expression < 5, LOOP * 2 <= F)
    for each in (expression, condition, Range(0, F)):
        assert pickle.loads(pickle.dumps(each)) is each
        assert copy.deepcopy(each) is each
        assert copy.copy(each) is each


def test_threads_get_the_same_object() -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda n: Var(f"thread{n % 5}"), range(400)))
    assert all(each is made[n % 5] for n, each in enumerate(made))


@pytest.mark.usefixtures("young_garbage")
def test_what_nobody_holds_is_forgotten() -> None:
    kept = Var("kept")
    for n in range(20_000):
        Var(f"short lived {n}")
    gc.collect()
    assert len(type(kept)._nodes) < 15_000
    assert Var("kept") is kept
    assert issubclass(Var, Interned)
