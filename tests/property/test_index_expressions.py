"""Random index expressions: simplification, ranges, proofs and substitution never lie."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.unit.expr.naive import holds, index_value

from tensorwright import expr
from tensorwright.expr.index.ranges import find_negative

z3 = pytest.importorskip("z3")

VARIABLES = (expr.Var("o"), expr.Var("i"), expr.Var("j"))
DECISIONS = (expr.Decision("f"), expr.Decision("t"))
OUTER, INNER, OTHER = VARIABLES
F, T = DECISIONS

EXTENTS = st.sampled_from([1, 2, 3, 4, 7, 8, F, T, F * T, expr.ceil_div(10, F), F + 1])
TAIL = expr.minimum(F, 10 - OUTER * F)
DIVISORS = st.sampled_from([1, 2, 3, 4, 8, F, T, F * T, F * 2, F + T])
ATOMS = st.one_of(st.sampled_from([*VARIABLES, *DECISIONS]), st.integers(-4, 12))


def _combine(inner):
    return st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a - b, inner, inner),
        st.builds(lambda a, s: a * s, inner, st.integers(-4, 8)),
        st.builds(lambda a, d: a * d, inner, DIVISORS),
        st.builds(lambda a, d, b: a * d + b, inner, DIVISORS, inner),
        st.builds(expr.floor_div, inner, DIVISORS),
        st.builds(expr.mod, inner, DIVISORS),
        st.builds(
            lambda a, d: (a // d) * d + a % d if not isinstance(a, int) else a, inner, DIVISORS
        ),
        st.builds(expr.minimum, inner, inner),
        st.builds(expr.maximum, inner, inner),
    )


EXPRESSIONS = st.recursive(ATOMS, _combine, max_leaves=6)
COMPARISONS = st.builds(expr.compare, st.sampled_from(expr.Relation), EXPRESSIONS, EXPRESSIONS)
CONDITIONS = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.builds(expr.all_of, inner, inner),
        st.builds(expr.any_of, inner, inner),
        st.builds(expr.negate, inner),
    ),
    max_leaves=3,
)
TABLES = st.builds(
    lambda o, i, j, is_tail: {
        OUTER: expr.Range.of_extent(o),
        INNER: expr.Range.of_extent(TAIL if is_tail else i),
        OTHER: expr.Range.of_extent(j),
    },
    EXTENTS,
    EXTENTS,
    EXTENTS,
    st.booleans(),
)
CHECKED = settings(max_examples=62)


def points(bounds):
    """Every value of the variables for some values of the decisions."""
    for f, t in ((1, 1), (2, 3), (3, 1), (4, 2), (5, 4)):
        env = {F: f, T: t}
        for o in range(index_value(bounds[OUTER].high, env, {}) + 1):
            high = index_value(bounds[INNER].high, env | {OUTER: o}, {})
            for i, j in product(
                range(high + 1), range(index_value(bounds[OTHER].high, env, {}) + 1)
            ):
                yield env | {OUTER: o, INNER: i, OTHER: j}


def spread(bounds):
    return list(points(bounds))[::5]


@CHECKED
@given(EXPRESSIONS, TABLES)
def test_simplification_is_an_equality(expression: expr.Index, bounds):
    simple = expr.simplify(expression, bounds)
    for env in spread(bounds):
        assert index_value(simple, env, {}) == index_value(expression, env, {}), (simple, env)


@CHECKED
@given(EXPRESSIONS, TABLES)
def test_an_interval_contains_every_value(expression: expr.Index, bounds):
    found = expr.interval(expression, bounds)
    assume(found is not None)
    for env in spread(bounds):
        # ends may mention variables further out, which have their value in env
        low, high = index_value(found.low, env, {}), index_value(found.high, env, {})
        assert low <= index_value(expression, env, {}) <= high, (found, env)


@CHECKED
@given(EXPRESSIONS, TABLES)
def test_what_is_proved_nonnegative_is(expression: expr.Index, bounds):
    assume(expr.is_nonnegative(expression, bounds))
    for env in spread(bounds):
        assert index_value(expression, env, {}) >= 0, env


@CHECKED
@given(EXPRESSIONS, TABLES)
def test_a_counterexample_is_one(expression: expr.Index, bounds):
    point = find_negative(expression, bounds) if isinstance(expression, expr.IndexExpr) else None
    if point is None:
        return
    assert index_value(expression, point, {}) < 0
    for var in point.keys() & bounds.keys():
        low, high = (index_value(end, point, {}) for end in (bounds[var].low, bounds[var].high))
        assert low <= point[var] <= high
    assert all(point[decision] > 0 for decision in DECISIONS if decision in point)


@CHECKED
@given(CONDITIONS, TABLES)
def test_simplified_conditions_are_equal(condition, bounds):
    simple = expr.simplify_condition(condition, bounds)
    for env in spread(bounds):
        assert holds(simple, env, {}) == holds(condition, env, {}), (simple, env)


@CHECKED
@given(EXPRESSIONS, st.sampled_from(VARIABLES), EXPRESSIONS)
def test_substitution_replaces(expression: expr.Index, var: expr.Var, by: expr.Index):
    result = expr.substitute(expression, {var: by})
    for values in ((0, 0, 0, 1, 1), (2, 1, 3, 2, 3), (5, 4, 0, 3, 2)):
        env = dict(zip((*VARIABLES, *DECISIONS), values, strict=True))
        inner = env | {var: index_value(by, env, {})}
        assert index_value(result, env, {}) == index_value(expression, inner, {})


@CHECKED
@given(EXPRESSIONS)
def test_equal_polynomials_are_one_value(expression: expr.Index):
    assert (expression + OUTER) * F - OUTER * F == F * expression
    assert expression - expression == 0


def _term(index: expr.Index):
    """An index expression as Z3 sees it; Z3's / and % of integers floor for positive divisors."""
    match index:
        case int():
            return z3.IntVal(index)
        case expr.Var(name) | expr.Decision(name):
            return z3.Int(name)
        case expr.NamedSize(name, divisor):
            return z3.Int(name) / divisor
        case expr.Poly(terms):
            total = z3.IntVal(0)
            for monomial, scale in terms:
                part = z3.IntVal(scale)
                for atom in monomial:
                    part = part * _term(atom)
                total = total + part
            return total
        case expr.FloorDiv(a, b) | expr.ExactDiv(a, b):
            return _term(a) / _term(b)
        case expr.Mod(a, b):
            return _term(a) % _term(b)
        case expr.Min(a, b):
            return z3.If(_term(a) <= _term(b), _term(a), _term(b))
        case expr.Max(a, b):
            return z3.If(_term(a) >= _term(b), _term(a), _term(b))
    raise TypeError(index)


def _formula(condition):
    match condition:
        case bool():
            return z3.BoolVal(condition)
        case expr.Compare(relation, a, b):
            left, right = _term(a), _term(b)
            return {
                expr.Relation.LT: left < right,
                expr.Relation.LE: left <= right,
                expr.Relation.EQ: left == right,
                expr.Relation.NE: left != right,
            }[relation]
        case expr.And(parts):
            return z3.And(*map(_formula, parts))
        case expr.Or(parts):
            return z3.Or(*map(_formula, parts))
        case expr.Not(part):
            return z3.Not(_formula(part))
    raise TypeError(condition)


LINEAR_DIVISORS = st.sampled_from([2, 3, 4, 6, 8])
LINEAR = st.recursive(
    st.one_of(st.sampled_from(VARIABLES), st.integers(-4, 12)),
    lambda inner: st.one_of(
        st.builds(lambda a, s, b: a * s + b, inner, st.integers(-4, 8), inner),
        st.builds(expr.floor_div, inner, LINEAR_DIVISORS),
        st.builds(expr.mod, inner, LINEAR_DIVISORS),
        st.builds(expr.minimum, inner, inner),
    ),
    max_leaves=5,
)
NUMBERS = {
    OUTER: expr.Range.of_extent(5),
    INNER: expr.Range.of_extent(8),
    OTHER: expr.Range.of_extent(3),
}


def _refuted(goal, bounds) -> bool:
    solver = z3.Solver()
    solver.set("rlimit", 200_000)
    for var, found in bounds.items():
        solver.add(_term(found.low) <= _term(var), _term(var) <= _term(found.high))
    solver.add(*(_term(decision) >= 1 for decision in DECISIONS), z3.Not(goal))
    return solver.check() == z3.sat


@settings(max_examples=30)
@given(LINEAR)
def test_z3_finds_no_counterexample(expression: expr.Index):
    simple = expr.simplify(expression, NUMBERS)
    assert not _refuted(_term(simple) == _term(expression), NUMBERS)
    condition = expr.compare(expr.Relation.LT, expression, 9)
    assert not _refuted(
        _formula(expr.simplify_condition(condition, NUMBERS)) == _formula(condition), NUMBERS
    )


SPLIT = {
    OUTER: expr.Range.of_extent(T),
    INNER: expr.Range.of_extent(F),
    OTHER: expr.Range.of_extent(T * F),
}
SYMBOLIC = [
    (OUTER * F + INNER) // F,
    (OUTER * F + INNER) % F,
    (OTHER // F) * F + OTHER % F,
    (OUTER * F * 4 + INNER * 4 + 3) // (F * 4),
]


@pytest.mark.parametrize("expression", SYMBOLIC, ids=str)
def test_z3_proves_symbolic_simplifications(expression: expr.Index):
    simple = expr.simplify(expression, SPLIT)
    assert simple in VARIABLES
    assert not _refuted(_term(simple) == _term(expression), SPLIT)


SIZES = (expr.named_size("n", 8, 512, 8), expr.named_size("m", 3, 20), expr.named_size("k"))
SIZE_TREES = st.recursive(
    st.one_of(st.integers(0, 2), st.integers(-4, 12).map(str)),
    lambda inner: st.one_of(
        st.tuples(st.just("+"), inner, st.integers(-4, 8), inner),
        st.tuples(st.sampled_from(["//", "%"]), inner, LINEAR_DIVISORS, inner),
        st.tuples(st.sampled_from(["min", "max"]), inner, st.just(0), inner),
    ),
    max_leaves=5,
)


def _over(tree, leaves, smaller, larger, number):
    """A tree over some leaves: the expression that arithmetic builds, or Z3's term as written."""
    if isinstance(tree, str):
        return number(int(tree))
    if isinstance(tree, int):
        return leaves[tree]
    operation, left, scale, right = tree
    left, right = (_over(each, leaves, smaller, larger, number) for each in (left, right))
    match operation:
        case "+":
            return left * scale + right
        case "//":
            return (left / scale if z3.is_expr(left) else left // scale) + right
        case "%":
            return left % scale + right
    return (smaller if operation == "min" else larger)(left, right)


@settings(max_examples=30)
@given(SIZE_TREES)
def test_z3_finds_no_counterexample_to_arithmetic_of_sizes(tree):
    def smaller(a, b):
        return z3.If(a <= b, a, b)

    def larger(a, b):
        return z3.If(a >= b, a, b)

    written = _over(tree, [z3.Int(name) for name in "nmk"], smaller, larger, z3.IntVal)
    size = _over(tree, SIZES, expr.minimum, expr.maximum, int)
    n, m, k = (z3.Int(name) for name in "nmk")
    holding = z3.And(n >= 8, n <= 512, n % 8 == 0, m >= 3, m <= 20, k >= 1)
    goals = [_term(size) == written, _term(expr.simplify(size, {})) == written]
    if expr.is_nonnegative(size):
        goals.append(written >= 0)
    assert not _refuted(z3.Implies(holding, z3.And(*goals)), {})
    assert {each.name for each in expr.named_sizes_of(size)} <= set("nmk")
