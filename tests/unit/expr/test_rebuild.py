"""Copies of values: shared nodes stay shared, and nothing is left that only a collection frees."""

import gc
import weakref

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


class Same:
    """Leaves a load as it is; unlike a function, it is freed at once when nothing refers to it."""

    def __call__(self, load: Load) -> Load:
        return load


def test_a_copy_leaves_no_cycles() -> None:
    value = (X[LOOP] + 1.0) * X[LOOP + 1]
    same = Same()
    alive = weakref.ref(same)
    gc.disable()
    try:
        map_loads(value, same)
        del same
        assert alive() is None, "a cycle of the copy holds what it was given"
    finally:
        gc.enable()


def test_loads_are_in_order_each_time() -> None:
    value = (X[LOOP] + Y[LOOP]) * X[LOOP + 1]
    expected = [("x", (LOOP,)), ("y", (LOOP,)), ("x", (LOOP + 1,))]
    for _ in range(2):
        assert [(load.source.name, load.indices) for load in loads_of(value)] == expected
