"""Simplification, ranges and proofs of index expressions, checked for every value there is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product

import pytest
from tests.unit.expr.naive import holds, index_value

from tensorwright import expr
from tensorwright.expr.index.ranges import find_negative

o, i, j, k = expr.Var("o"), expr.Var("i"), expr.Var("j"), expr.Var("k")
f, n, t0, t1, t2 = (expr.Decision(name) for name in ("f", "n", "t0", "t1", "t2"))
SPLIT: expr.Bounds = {o: expr.Range.of_extent(n), i: expr.Range.of_extent(f)}
NUMBERS: expr.Bounds = {
    o: expr.Range.of_extent(5),
    i: expr.Range.of_extent(16),
    j: expr.Range.of_extent(3),
}
CEILING: expr.Bounds = {o: expr.Range.of_extent(expr.ceil_div(14, f)), i: expr.Range.of_extent(f)}
TAIL: expr.Bounds = {
    o: expr.Range.of_extent(expr.ceil_div(14, f)),
    i: expr.Range.of_extent(expr.minimum(f, 14 - o * f)),
}
EXACT: expr.Bounds = {
    o: expr.Range.of_extent(expr.exact_div(24, t0 * t1)),
    i: expr.Range.of_extent(t0),
    j: expr.Range.of_extent(t1),
}
DEEP: expr.Bounds = {
    o: expr.Range.of_extent(n),
    i: expr.Range.of_extent(t0),
    j: expr.Range.of_extent(t1),
    k: expr.Range.of_extent(t2),
}
FUSED: expr.Bounds = {k: expr.Range.of_extent(n * f)}
deep = ((o * t0 + i) * t1 + j) * t2 + k
exact = (o * t0 + i) * t1 + j


def assignments(bounds: expr.Bounds, top: int = 3) -> Iterator[dict]:
    """Every value of the variables for every small value of the decisions."""
    ends = [end for r in bounds.values() for end in (r.low, r.high)]
    decisions = sorted(
        {d for d in (f, n, t0, t1, t2) if any(str(d) in str(e) for e in ends)}, key=str
    )
    for values in product(range(1, top + 1), repeat=len(decisions)):
        yield from _extend(dict(zip(decisions, values, strict=True)), list(bounds.items()))


def _extend(env: dict, open_: list) -> Iterator[dict]:
    if not open_:
        yield env
        return
    (var, found), *rest = open_
    try:
        low, high = index_value(found.low, env, {}), index_value(found.high, env, {})
    except AssertionError:  # an exact division that is not exact for these values
        return
    for value in range(low, high + 1):
        yield from _extend(env | {var: value}, rest)


def same(left: expr.Index, right: expr.Index, bounds: expr.Bounds, top: int = 3) -> bool:
    checked = 0
    for env in assignments(bounds, top):
        checked += 1
        if index_value(left, env, {}) != index_value(right, env, {}):
            return False
    assert checked
    return True


@pytest.mark.parametrize(
    ("expression", "simple", "bounds"),
    [
        ((o * f + i) // f, o, SPLIT),
        ((o * f + i) % f, i, SPLIT),
        ((o * f + f - 1) // f, o, SPLIT),
        (deep // t2, (o * t0 + i) * t1 + j, DEEP),
        (deep % t2, k, DEEP),
        (deep // (t1 * t2), o * t0 + i, DEEP),
        ((deep // t2) % t1, j, DEEP),
        ((deep // (t1 * t2)) % t0, i, DEEP),
        (deep // (t0 * t1 * t2), o, DEEP),
        (deep % (t1 * t2), j * t2 + k, DEEP),
        ((deep % (t0 * t1 * t2)) // t2, i * t1 + j, DEEP),
        (exact // t1, o * t0 + i, EXACT),
        (exact % (t0 * t1), i * t1 + j, EXACT),
        (expr.exact_div(24, t0 * t1) * t0 * t1, 24, EXACT),
        ((k // f) * f + k % f, k, FUSED),
        (((k // f) * f + k % f) * 3 + 1, k * 3 + 1, FUSED),
        (expr.minimum(16, 80 - o * 16), 16, NUMBERS),
        (expr.maximum(o * 16 + i, 0), o * 16 + i, NUMBERS),
        ((o * 16 + i) // 16, o, NUMBERS),
        ((o * 16 + i) % 16, i, NUMBERS),
        ((o * 16 + i) % 32, (o % 2) * 16 + i, NUMBERS),
        ((o * 48 + i * 3 + j) // 3, o * 16 + i, NUMBERS),
        ((o * 48 + i * 3 + j) // 48, o, NUMBERS),
        (((o * 48 + i * 3 + j) // 3) % 16, i, NUMBERS),
        ((o * 32 + i * 2 + 1) // 2, o * 16 + i, NUMBERS),
        ((o + i * 5) % 5, o, NUMBERS),
        (o // 5, 0, NUMBERS),
        (
            expr.minimum(expr.minimum(f, 14 - o * f) + 14, 14 + f),
            expr.minimum(f, 14 - o * f) + 14,
            CEILING,
        ),
    ],
    ids=str,
)
def test_simplify(expression, simple, bounds):
    assert expr.simplify(expression, bounds) == simple
    assert same(expression, simple, bounds, top=4)


@pytest.mark.parametrize(
    ("condition", "simple", "bounds"),
    [
        (exact < 24, True, EXACT),
        (exact >= 0, True, EXACT),
        (exact < 23, exact < 23, EXACT),
        (o * f + i < expr.ceil_div(14, f) * f, True, CEILING),
        (o * f + i < 14 + f, True, CEILING),
        (o * f + i < 14, o * f + i < 14, CEILING),
        (o * f + i < 14, True, TAIL),
        (k // f < n, True, FUSED),
        (k % f < f, True, FUSED),
        (k // f >= n, False, FUSED),
        (deep < n * t0 * t1 * t2, True, DEEP),
        (expr.all_of(o * 16 + i < 80, i + j >= 0), True, NUMBERS),
        (expr.any_of(o * 16 + i >= 80, o < 3), o < 3, NUMBERS),
        (expr.negate(o < 5), False, NUMBERS),
        (expr.all_of(o < 3, i < 20), o < 3, NUMBERS),
    ],
    ids=str,
)
def test_simplify_condition(condition: expr.Condition, simple: expr.Condition, bounds: expr.Bounds):
    assert expr.simplify_condition(condition, bounds) == simple
    for env in assignments(bounds):
        assert holds(condition, env, {}) == holds(simple, env, {})


def test_exact_bounds_of_a_tail():
    """The inner range depends on the outer variable; replacing it first keeps what relates them."""
    assert expr.is_nonnegative(13 - (o * f + i), TAIL)
    assert not expr.is_nonnegative(12 - (o * f + i), TAIL)


@pytest.mark.parametrize("divisor", [3, 64, 1000, 4099])
def test_a_quotient_is_bounded_from_both_sides_and_not_more(divisor: int) -> None:
    """a - b + 1 <= b*(a//b) <= a; bounds closer by one fail only where a % b is 0 or b - 1."""
    for most in (5_000, 10_000_003):
        bounds = {i: expr.Range(0, most)}
        whole = divisor * expr.floor_div(i, divisor)
        assert expr.is_nonnegative(whole - i + divisor - 1, bounds)
        assert not expr.is_nonnegative(whole - i + divisor - 2, bounds)
        assert expr.is_nonnegative(i - whole, bounds)
        assert not expr.is_nonnegative(i - whole - 1, bounds)


@pytest.mark.parametrize(
    ("expression", "point"),
    [
        (i - 1, {i: 0}),
        (14 - i, {i: 15}),
        (15 - i, None),
        (32 - f, {f: 64}),
        (i - f, {i: 0, f: 1}),
        (expr.exact_div(f, 48), None),  # at no corner does 48 divide f
        (expr.exact_div(n, f) - 2, {n: 1, f: 1}),
        (63 - (j * f + f - 1), {j: 2, f: 64}),
    ],
)
def test_corners_refute(
    expression: expr.IndexExpr, point: dict[expr.IndexExpr, int] | None
) -> None:
    assert find_negative(expression, NUMBERS) == point


@pytest.mark.parametrize("bounds", [SPLIT, NUMBERS, CEILING, EXACT, FUSED], ids=str)
def test_every_pair_of_small_operations(bounds: expr.Bounds):
    """All (a op1 b) op2 c over variables, decisions and numbers: equal for every value."""
    variables = list(bounds)
    atoms: list[expr.Index] = [*variables, 2, 3]
    sums = [a * s + b for a in variables for b in atoms for s in (1, 2, 3, f) if _open(s, bounds)]
    divisors = [d for d in (1, 2, 3, 4, 6, 16, f, f * 2) if _open(d, bounds)]
    points = [dict(env) for env in assignments(bounds)][::7]
    for value, d in product(sums, divisors):
        for expression in (
            value // d,
            value % d,
            (value // d) % 2,
            expr.minimum(value, d),
            value - value // d * d,
        ):
            simple = expr.simplify(expression, bounds)
            for env in points:
                assert index_value(simple, env, {}) == index_value(expression, env, {}), (
                    f"{expression} -> {simple} at {env}"
                )
            box = expr.interval(expression, bounds)
            if box is not None:
                for env in points:
                    found = index_value(expression, env, {})
                    low, high = (index_value(end, env, {}) for end in (box.low, box.high))
                    assert low <= found <= high, f"{expression} in {box} at {env}"


def _open(value: expr.Index, bounds: expr.Bounds) -> bool:
    """Whether the decisions of the value are chosen with those of the bounds."""
    return isinstance(value, int) or "?f" in str(list(map(str, (r.high for r in bounds.values()))))


def test_binding_decisions_gives_the_concrete_simplification():
    values = {n: 4, t0: 2, t1: 3, t2: 5}
    concrete = {
        var: expr.Range.of_extent(expr.substitute(r.high + 1, values)) for var, r in DEEP.items()
    }
    assert concrete[k] == expr.Range(0, 4)
    for expression in (deep // t2, deep % (t1 * t2), (deep // t2) % t1):
        early = expr.substitute(expr.simplify(expression, DEEP), values)
        assert early == expr.simplify(expr.substitute(expression, values), concrete)


def test_the_work_of_simplifying_the_indices_of_a_kernel_is_bounded():
    bounds = {expr.Var(f"v{n}"): expr.Range.of_extent(n + 2) for n in range(12)}
    number: expr.Index = 0
    for var, found in bounds.items():
        number = number * (found.high + 1) + var
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        for divisor in range(2, 102):
            expr.simplify(number // divisor, bounds)
            expr.simplify_condition(number < divisor * 1000, bounds)
    finally:
        sys.setprofile(None)
    assert calls < 2_000_000  # 0.9 million, counting generators as often as they go on


@pytest.mark.parametrize("relation", list(expr.Relation))
@pytest.mark.parametrize("offset", [-4, 0, 5])
@pytest.mark.parametrize("side", ["left", "right", "both"])
def test_a_quotient_is_compared_by_its_dividend(
    relation: expr.Relation, offset: int, side: str
) -> None:
    quotient = expr.floor_div(i + o, 3) + offset
    left, right = {
        "left": (quotient, 2),
        "right": (2, quotient),
        "both": (quotient, expr.floor_div(i, 2)),
    }[side]
    plain = expr.without_division(relation, left, right)
    is_plain = side != "both" and relation in (expr.Relation.LT, expr.Relation.LE)
    assert ("//" in str(plain)) is not is_plain
    for env in assignments(NUMBERS):
        assert holds(plain, env, {}) == holds(expr.compare(relation, left, right), env, {})


def test_whole_parts_are_replaced() -> None:
    part = i // 4
    index = part * 3 + expr.minimum(part, 5) + j
    assert expr.replace_parts(index, {part: 2}) == j + 8
    assert expr.replace_parts(index, {part: 2, expr.minimum(part, 5): 7}) == j + 13
    assert expr.replace_parts(i % 4 + 1, {part: 2}) == i % 4 + 1
