"""Copies of values: shared nodes stay shared, and nothing is left that only a collection frees."""

import gc

from tensorwright.expr import Apply, Fn, Load, Var, apply, loads_of, map_loads, placeholder

X, Y = placeholder("x", (8,)), placeholder("y", (8,))
LOOP = Var("i")


def test_shared_nodes_stay_shared() -> None:
    part = X[LOOP] + 1.0
    copied = map_loads(apply(Fn.MUL, part, part), lambda load: Load(Y, load.indices))
    assert isinstance(copied, Apply)
    left, right = copied.args
    assert left is right
    assert [load.source for load in loads_of(copied)] == [Y]


def test_a_copy_leaves_no_cycles() -> None:
    value = (X[LOOP] + 1.0) * X[LOOP + 1]
    gc.collect()
    gc.disable()
    try:
        map_loads(value, lambda load: load)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_loads_are_in_order_each_time() -> None:
    value = (X[LOOP] + Y[LOOP]) * X[LOOP + 1]
    expected = [("x", (LOOP,)), ("y", (LOOP,)), ("x", (LOOP + 1,))]
    for _ in range(2):
        assert [(load.source.name, load.indices) for load in loads_of(value)] == expected
