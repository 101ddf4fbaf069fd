"""Operators of rewriting: what they mean, for which shapes, and what they refuse."""

from __future__ import annotations

import math
import random
import re
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables import rows_of
from torch.nn import functional as nn  # noqa: F401 - of the table

from tensorwright.base import InternalError, UsageError
from tensorwright.rewriting.assumptions import Misfit, Needs, fitting
from tensorwright.rewriting.dims import Extent, atoms_of, value_of
from tensorwright.rewriting.meaning import (
    evaluate_terms,
    infer,
    infer_shapes,
    instantiate,
    symbolic_shape,
)
from tensorwright.rewriting.operators import OPERATORS, number_word, operator_named
from tensorwright.rewriting.operators.parameters import number_of_word
from tensorwright.rewriting.terms import Apply, Input
from tensorwright.rewriting.text import parse_term


def same(found, wanted):
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape
    assert np.allclose(found, wanted, rtol=1e-12, atol=1e-12)


VALUES = """
matmul(?x, ?y) | x(2, 3, 4) y(2, 4, 5) | x @ y
{name}(?x) | x(2, 3) | torch.{name}(x)
    for name in "relu exp sigmoid tanh neg abs sign floor ceil erf sin cos".split()
{name}(exp(?x)) | x(2, 3) | torch.{name}(x.exp())
    for name in "sqrt rsqrt log".split()
{ours}(?x, ?y) | x(2, 3) y(2, 3) | torch.{theirs}(x, y)
    for ours, theirs in PAIRS
softplus(?x) | x(3, 4) | nn.softplus(x)
hard_swish(?x) | x(3, 4) | nn.hardswish(x)
gelu[none](?x) | x(3, 4) | nn.gelu(x)
gelu[tanh](?x) | x(3, 4) | nn.gelu(x, approximate="tanh")
leaky_relu[f0p25](?x) | x(3, 4) | nn.leaky_relu(x, 0.25)
elu[f0p5](?x) | x(3, 4) | nn.elu(x, 0.5)
swish[f1p0](?x) | x(3, 4) | nn.silu(x)
clip[fm0p5, f1em01](?x) | x(3, 4) | x.clip(-0.5, 0.1)
hard_sigmoid[f0p25, f0p5](?x) | x(3, 4) | (x / 4 + 0.5).clip(0, 1)
ewpow(exp(?x), ?y) | x(2, 3) y(2, 3) | x.exp() ** y
select(relu(?c), ?x, ?y) | c(2, 3) x(2, 3) y(2, 3) | torch.where(c > 0, x, y)
scalar_mul(?x, ?s) | x(2, 3) s() | x * s
concat[1](?x, ?y) | x(2, 3) y(2, 1) | torch.cat([x, y], 1)
split0[1, 2](?x) | x(2, 5) | x[:, :2]
split1[1, 2](?x) | x(2, 5) | x[:, 2:]
transpose[2, 0, 1](?x) | x(2, 3, 4) | x.permute(2, 0, 1)
reshape[6, 4](?x) | x(2, 3, 4) | x.reshape(6, 4)
broadcast[2, 3](?x) | x(2, 1) | x.expand(2, 3)
slice[1, 1, 3](?x) | x(2, 5) | x[:, 1:3]
pad[1, 1, 2](?x) | x(2, 3) | nn.pad(x, (1, 2))
reverse[1](?x) | x(2, 3) | x.flip(1)
strided[1, 2](?x) | x(2, 5) | x[:, ::2]
conv2d[1, 1, same, none](?x, ?w) | x(2, 4, 5, 6) w(8, {each}, 3, 3)
    | nn.conv2d(x, w, padding=1, groups={groups})
    for groups, each in ((1, 4), (2, 2), (4, 1))
conv2d[2, 1, valid, relu](?x, ?w) | x(2, 4, 5, 6) w(8, {each}, 3, 2)
    | nn.conv2d(x, w, stride=(2, 1), groups={groups}).relu()
    for groups, each in ((1, 4), (2, 2), (4, 1))
conv2d[2, 2, same, none](?x, ?w) | x(1, 1, 4, 5) w(1, 1, 3, 3)
    | nn.conv2d(nn.pad(x, (1, 1, 0, 1)), w, stride=2)
conv2d[1, 1, same, none](?x, ?w) | x(1, 1, 4, 4) w(1, 1, 2, 2)
    | nn.conv2d(nn.pad(x, (0, 1, 0, 1)), w)
conv3d[1, 1, 1, same, relu](?x, ?w) | x(2, 4, 3, 5, 6) w(8, {each}, 3, 1, 3)
    | nn.conv3d(x, w, padding=(1, 0, 1), groups={groups}).relu()
    for groups, each in ((1, 4), (2, 2), (4, 1))
conv3d[1, 2, 1, valid, none](?x, ?w) | x(2, 4, 3, 5, 6) w(8, {each}, 3, 1, 3)
    | nn.conv3d(x, w, stride=(1, 2, 1), groups={groups})
    for groups, each in ((1, 4), (2, 2), (4, 1))
conv3d[2, 1, 1, p1_0_0_2_1_0_d2_1_2, none](?x, ?w) | x(2, 4, 3, 5, 6) w(8, {each}, 3, 1, 3)
    | nn.conv3d(nn.pad(x, (0, 0, 0, 1, 1, 2)), w, None, (2, 1, 1), 0, (2, 1, 2), {groups})
    for groups, each in ((1, 4), (2, 2), (4, 1))
max_pool3d[1, 3, 2, 1, 2, 2, valid](?x) | x(2, 2, 3, 5, 4) | nn.max_pool3d(x, (1, 3, 2), (1, 2, 2))
avg_pool3d[3, 3, 1, 1, 1, 1, same](?x) | x(2, 2, 3, 5, 4)
    | nn.avg_pool3d(x, (3, 3, 1), 1, padding=(1, 1, 0))
max_pool[3, 3, 2, 2, valid](?x) | x(2, 2, 5, 5) | nn.max_pool2d(x, 3, 2)
max_pool[3, 3, 1, 1, same](?x) | x(2, 2, 5, 5) | nn.max_pool2d(x, 3, 1, padding=1)
avg_pool[3, 3, 1, 1, same](?x) | x(2, 2, 5, 5) | nn.avg_pool2d(x, 3, 1, padding=1)
ones[2, 3]() | | np.ones((2, 3))
eye[3]() | | np.eye(3)
pool_kernel[2, 3, 3]() | | np.full((2, 1, 3, 3), 1 / 9)
conv2d[1, 1, same, none](?x, identity_kernel[3, 2, 4]()) | x(2, 3, 5, 5) | x
reduce_sum[1](?x) | x(2, 3, 4) | x.sum(1, keepdim=True)
reduce_mean[0](?x) | x(2, 3, 4) | x.mean(0, keepdim=True)
reduce_max[2](?x) | x(2, 3, 4) | x.amax(2, keepdim=True)
reduce_min[1](?x) | x(2, 3, 4) | x.amin(1, keepdim=True)
batch_norm(?x, ?s, ?b, ?m, exp(?v)) | x(2, 3, 4) s(3) b(3) m(3) v(3)
    | nn.batch_norm(x, m, v.exp(), s, b, eps=1e-5)
softmax[1](?x) | x(2, 3, 4) | x.softmax(1)
layer_norm[1, f1em05](?x, ?s, ?b) | x(2, 3, 4) s(3, 4) b(3, 4) | nn.layer_norm(x, (3, 4), s, b)
"""
PAIRS = (
    *(("ewadd", "add"), ("ewsub", "sub"), ("ewmul", "mul"), ("ewdiv", "div")),
    *(("ewmax", "maximum"), ("ewmin", "minimum")),
    *(("less", "less"), ("less_or_equal", "less_equal"), ("equal", "eq")),
)


@pytest.mark.parametrize("row", rows_of(VALUES, globals()))
def test_values(row):
    """A term at random inputs, and PyTorch's value: term | shapes | value."""
    text, shapes, wanted = row.split("|")
    generator = np.random.default_rng(4)
    inputs = {
        name: generator.standard_normal(tuple(map(int, re.findall(r"\d+", extents))))
        for name, extents in re.findall(r"(\w)\(([^)]*)\)", shapes)
    }
    (found,) = evaluate_terms([parse_term(text.strip())], inputs)
    tensors = {name: torch.from_numpy(np.asarray(each)) for name, each in inputs.items()}
    same(found, eval(wanted.strip(), globals(), tensors))


@pytest.mark.parametrize("number", [0.01, -1.5, 6.0, 1e-05, 2.5e30, math.inf, -math.inf])
def test_numbers_are_words_and_back(number):
    assert number_of_word(number_word(number)) == number


def test_what_is_no_number_is_refused():
    for word in ("same", "f1", "fnan", "0p5"):
        with pytest.raises(ValueError, match="not a word of a number"):
            number_of_word(word)


@pytest.mark.parametrize("own", [(1, 1), (1, 3), (3, 1), (2, 2), (3, 2)])
def test_enlarged_kernels_do_the_same(own):
    (plain,), (large,) = (
        evaluate_terms(
            [parse_term(text)],
            {
                "x": np.arange(25.0).reshape(1, 1, 5, 5),
                "w": np.arange(1.0, 1 + np.prod(own)).reshape(1, 1, *own),
            },
        )
        for text in (
            "conv2d[1, 1, same, none](?x, ?w)",
            "conv2d[1, 1, same, none](?x, enlarge[4, 5](?w))",
        )
    )
    same(plain, large)


REFUSED = (
    ("layer_norm[1, f1em05](?x, ?y, ?y)", ((2, 3), (2,)), "3 is not 2"),
    ("layer_norm[1, small](?x, ?y, ?y)", ((2, 3), (3,)), "does not know epsilon 'small'"),
    ("leaky_relu[2](?x)", ((2, 3),), "alpha of leaky_relu cannot be 2"),
    ("softmax[2](?x)", ((2, 3),), "no dimension 2"),
    ("reverse[2](?x)", ((2, 3),), "no dimension 2"),
    ("strided[1, 0](?x)", ((2, 3),), "0 is less than 1"),
    ("matmul(?x, ?y)", ((2, 3), (4, 5)), "3 is not 4"),
    ("matmul(?x, ?y)", ((2, 3), (3,)), "unequal ranks"),
    ("matmul(?x, ?y)", ((2, 2, 3), (3, 3, 2)), "2 is not 3"),
    ("ewadd(?x, ?y)", ((2, 3), (1, 3)), "2 is not 1"),
    ("ewmul(?x, ?y)", ((2, 3), (3,)), "ranks differ"),
    ("scalar_mul(?x, ?y)", ((2, 3), (1,)), "rank 1"),
    ("transpose[0, 0](?x)", ((2, 3),), "not a permutation"),
    ("concat[2](?x, ?y)", ((2, 3), (2, 3)), "no dimension 2"),
    ("concat[0](?x, ?y)", ((2, 3), (2, 4)), "3 is not 4"),
    ("concat[0](?x, ?y)", ((2, 3), (2, 3, 1)), "ranks differ"),
    ("split0[1, 3](?x)", ((2, 3),), "3 is less than 4"),
    ("split1[1, 0](?x)", ((2, 3),), "0 is less than 1"),
    ("conv2d[1, 1, same, none](?x, ?y)", ((1, 3, 4, 4), (2, 2, 3, 3)), "2 does not divide 3"),
    ("conv2d[1, 1, same, none](?x, ?y)", ((1, 4, 4, 4), (3, 2, 3, 3)), "2 does not divide 3"),
    ("conv2d[1, 1, valid, none](?x, ?y)", ((1, 1, 2, 4), (1, 1, 3, 3)), "2 is less than 3"),
    ("conv2d[0, 1, same, none](?x, ?y)", ((1, 1, 2, 4), (1, 1, 3, 3)), "a stride below 1"),
    ("conv2d[1, 1, full, none](?x, ?y)", ((1, 1, 4, 4), (1, 1, 3, 3)), "padding 'full'"),
    ("conv3d[1, 1, 1, same, none](?x, ?y)", ((1, 4, 4, 4), (1, 4, 3, 3)), "rank 4"),
    ("conv3d[1, 1, 1, p1_1_1_1, none](?x, ?y)", ((1, 1, 3, 3, 3),) * 2, "padding 'p1_1_1_1'"),
    ("conv2d[1, 1, same](?x, ?y)", ((1, 1, 4, 4), (1, 1, 3, 3)), "takes 4 parameters, not 3"),
    ("max_pool[3, 3, 1, 1, valid](?x)", ((1, 1, 2, 4),), "2 is less than 3"),
    ("avg_pool[0, 3, 1, 1, same](?x)", ((1, 1, 2, 4),), "a kernel or stride below 1"),
    ("enlarge[3, 3](?x)", ((1, 1, 4, 3),), "3 is less than 4"),
    ("reshape[5](?x)", ((2, 3),), "5 is not 6"),
    ("broadcast[2, 3](?x)", ((2, 2),), "2 (is not 1|cannot be stretched)"),
    ("broadcast[2, 3](?x)", ((3,),), "rank 1"),
    ("slice[0, 1, 1](?x)", ((3,),), "1 is less than 2"),
    ("slice[0, 0, 4](?x)", ((3,),), "3 is less than 4"),
    ("reduce_sum[1](?x)", ((3,),), "no dimension 1"),
    ("ones[0]()", (), "0 is less than 1"),
    ("ones[same]()", (), "does not know size 'same'"),
    ("relu(?x, ?y)", ((2,), (2,)), "takes 1 arguments"),
    ("relu[1](?x)", ((2,),), "takes 0 parameters, not 1"),
    ("concat[x.0](?x, ?y)", ((1, 3), (1, 3)), None),
)


@pytest.mark.parametrize(("text", "shapes", "reason"), REFUSED)
def test_what_does_not_fit_is_refused(text, shapes, reason):
    named = dict(zip("xy", shapes, strict=False))
    term = parse_term(text)
    if reason is None:  # an axis is a number, but for sizes that are computed first
        answer, reason = infer([term], named), "axis of concat cannot be"
    else:
        answer = infer_shapes([term], named)
    assert isinstance(answer, Misfit)
    assert re.search(reason, answer.reason)


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda each: each.name)
def test_whether_an_operator_fits_is_answered_at_all_ranks(operator):
    """A shape or a Misfit, at numbers and at symbols, whatever the ranks and the parameters."""
    chance = random.Random(operator.name)
    for _ in range(300):
        rank = chance.randrange(8)
        kinds = list(operator.parameters)
        if kinds and kinds[-1].repeats:
            kinds += [kinds[-1]] * (rank - len(kinds))
        params = tuple(_any_param(chance, kind) for kind in kinds)
        ranks = [chance.choice((rank, chance.randrange(8))) for _ in operator.arguments]
        extents = [chance.randint(0, 4) for _ in range(8)]
        if chance.random() < 0.5:
            shapes = tuple(tuple(extents[:each]) for each in ranks)
        else:
            shapes = tuple(tuple(chance.sample(extents, each)) for each in ranks)
        symbols = tuple(symbolic_shape(f"x{at}", each) for at, each in enumerate(ranks))
        for each in (shapes, symbols):
            answer = operator.result(params, each, Needs())
            assert isinstance(answer, Misfit | tuple)


def _any_param(chance, kind):
    if chance.random() < 0.1:
        return chance.choice((-1, 9, "same", "no such word", Extent("x0", 1)))
    if kind.is_word:
        return chance.choice((*kind.words, *kind.samples, "_any_"))
    return chance.randrange(5)


def test_what_is_known_to_fit_and_does_not_is_a_fault_of_ours():
    assert fitting((2, 3)) == (2, 3)
    with pytest.raises(InternalError, match="known to fit: 3 is not 4"):
        fitting(Misfit("3 is not 4"))


def test_unknown_operators_name_the_nearest():
    with pytest.raises(UsageError) as caught:
        operator_named("conv2")
    assert "conv2d" in caught.value.remedy
    with pytest.raises(UsageError) as caught:
        operator_named("qqqqqq")
    assert "matmul" in caught.value.remedy


def test_names_are_distinct():
    names = [operator.name for operator in OPERATORS]
    assert len(set(names)) == len(names)


SYMBOLIC = (
    ("matmul(?x, ?y)", (2, 2)),
    ("conv2d[2, 1, same, none](?x, ?y)", (4, 4)),
    ("conv2d[1, 2, valid, relu](?x, ?y)", (4, 4)),
    ("concat[1](?x, ?y)", (2, 2)),
    ("split1[0, y.0](concat[0](?x, ?y))", (2, 2)),
    ("max_pool[3, 2, 2, 1, valid](?x)", (4,)),
    ("reshape[x.0*x.1](?x)", (2,)),
    ("slice[0, 1, x.0](?x)", (2,)),
    ("strided[0, 2](reverse[0](?x))", (2,)),
    ("softmax[1](layer_norm[1, f1em05](?x, ?y, ?y))", (2, 1)),
    ("pad[0, y.0, 1](?x)", (2, 1)),
    ("reduce_mean[1](ewadd(?x, ?y))", (3, 3)),
)


@settings(max_examples=75)
@given(st.sampled_from(SYMBOLIC), st.lists(st.integers(1, 5), min_size=8, max_size=8))
def test_symbolic_shapes_are_the_concrete_ones(case, extents):
    """What the shape rules say of expressions, with numbers put in, is what they say of numbers."""
    text, ranks = case
    term = parse_term(text)
    symbolic = {name: symbolic_shape(name, rank) for name, rank in zip("xy", ranks, strict=False)}
    numbers = iter(extents)
    concrete = {
        name: tuple(next(numbers) for _ in range(rank))
        for name, rank in zip("xy", ranks, strict=False)
    }
    values = {Extent(n, axis): e for n, shape in concrete.items() for axis, e in enumerate(shape)}
    typing = infer([term], symbolic)
    answer = infer_shapes([term], concrete)
    if isinstance(answer, Misfit):
        assert any(not _holds(fact, values) for fact in typing.facts)
        return
    (shape,) = answer
    assert all(_holds(fact, values) for fact in typing.facts)
    assert tuple(value_of(each, values) for each in typing.shapes[0]) == shape
    inputs = {name: np.ones(own) for name, own in concrete.items()}
    assert evaluate_terms([term], inputs)[0].shape == shape


def _holds(fact, values):
    parts = [value_of(getattr(fact, name), values) for name in type(fact).__slots__]
    match type(fact).__name__:
        case "Equal":
            return parts[0] == parts[1]
        case "AtLeast":
            return parts[0] >= parts[1]
        case _:
            return parts[1] % parts[0] == 0


def test_a_dimension_is_stretched_from_1_or_stays():
    term = parse_term("broadcast[x.0, y.0](?x)")
    assert infer_shapes([term], {"x": (2, 1), "y": (3,)}) == ((2, 3),)
    assert infer_shapes([term], {"x": (2, 3), "y": (3,)}) == ((2, 3),)
    assert isinstance(infer_shapes([term], {"x": (2, 2), "y": (3,)}), Misfit)
    typing = infer([term], {"x": symbolic_shape("x", 2), "y": symbolic_shape("y", 1)})
    assert [str(each) for each in typing.shapes[0]] == ["x.0", "y.0"]


def test_sizes_are_computed_from_shapes():
    term = parse_term("split0[0, y.0 // 2](?x)")
    found = instantiate(term, {"x": (4,), "y": (6,)})
    assert found == Apply("split0", (0, 3), (Input("x"),))
    nothing = instantiate(parse_term("ones[y.1]()"), {"y": (6,)})
    assert nothing == Misfit("there is no extent y.1")
    assert infer([term], {"y": (6,)}) == Misfit("input x has no shape")


def test_needs_keep_what_cannot_be_decided_each_once():
    size = Extent("x", 0)
    needs = Needs()
    for _ in range(2):
        needs.equal(size, 4)
        needs.at_least(size, 1)
        needs.divides(2, size)
        needs.divides(1, size)
        needs.equal(size, size)
    assert len(needs.facts) == 3
    assert {extent for fact in needs.facts for extent in atoms_of(size)} == {Extent("x", 0)}


def test_no_shape_depends_on_the_words_that_say_so():
    sizes = {
        "conv2d": ((2, 2), ((2, 4, 5, 6), (8, 4, 3, 3))),
        "conv3d": ((2, 2, 1), ((2, 4, 3, 5, 6), (8, 4, 3, 3, 3))),
        "layer_norm": ((1,), ((4, 3), (3,), (3,))),
    }
    beside = [each for each in OPERATORS if any(p.is_beside_shape for p in each.parameters)]
    assert {"conv2d", "layer_norm", "gelu", "clip"} <= {each.name for each in beside}
    for operator in beside:
        numbers, shapes = sizes.get(operator.name, ((), ((4, 3),)))
        rest = operator.parameters[len(numbers) :]
        words = [p.words or p.samples if p.is_beside_shape else ("valid",) for p in rest]
        found = set()
        for chosen in product(*words):
            needs = Needs()
            found.add((operator.shape((*numbers, *chosen), shapes, needs), needs.facts))
        assert len(found) == 1, operator.name
