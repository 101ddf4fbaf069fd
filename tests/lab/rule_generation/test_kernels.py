"""Exact arithmetic on whole arrays: values and fingerprints are what the operators mean."""

from __future__ import annotations

import numpy as np
import pytest

from tensorwright.rewriting.assumptions import fitting
from tensorwright.rewriting.meaning import evaluate_terms, infer_shapes
from tensorwright.rewriting.operators import OPERATORS
from tensorwright.rewriting.terms import Apply, Input
from tensorwright.rewriting.text import parse_rule
from tensorwright_lab.rule_generation.enumerate.state import prepared_values
from tensorwright_lab.rule_generation.fingerprint import field, fingerprints
from tensorwright_lab.rule_generation.fingerprint.field import centred
from tensorwright_lab.rule_generation.fingerprint.field_domain import FieldDomain, residues
from tensorwright_lab.rule_generation.fingerprint.kernels import values_of
from tensorwright_lab.rule_generation.fingerprint.random_inputs import Evaluator
from tensorwright_lab.rule_generation.fingerprint.structure import structure_of
from tensorwright_lab.rule_generation.preset import parse_preset

CASES = (
    ("matmul", (), ((2, 3), (3, 4))),
    ("matmul", (), ((2, 2, 3), (2, 3, 2))),
    ("ewadd", (), ((2, 3), (2, 3))),
    ("ewmul", (), ((2, 3), (2, 3))),
    ("ewsub", (), ((2, 3), (2, 3))),
    ("ewdiv", (), ((2, 3), (2, 3))),
    ("scalar_mul", (), ((2, 3), ())),
    ("relu", (), ((2, 3),)),
    ("exp", (), ((2, 3),)),
    ("sigmoid", (), ((2, 3),)),
    ("tanh", (), ((2, 3),)),
    ("transpose", (1, 0), ((2, 3),)),
    ("concat", (1,), ((2, 3), (2, 2))),
    ("split0", (0, 1), ((2, 3),)),
    ("split1", (1, 1), ((2, 3),)),
    ("conv2d", (1, 1, "same", "none"), ((2, 2, 3, 4), (3, 2, 3, 1))),
    ("conv2d", (2, 2, "valid", "relu"), ((1, 4, 5, 5), (4, 2, 3, 3))),
    ("conv2d", (1, 1, "same", "none"), ((1, 3, 3, 3), (3, 1, 3, 3))),
    ("avg_pool", (3, 3, 1, 1, "same"), ((2, 2, 3, 4),)),
    ("max_pool", (3, 3, 2, 2, "same"), ((2, 2, 3, 4),)),
    ("conv3d", (1, 1, 1, "same", "none"), ((2, 2, 3, 2, 4), (3, 2, 3, 1, 2))),
    ("conv3d", (2, 1, 2, "valid", "relu"), ((1, 4, 3, 4, 5), (4, 2, 3, 3, 1))),
    ("avg_pool3d", (3, 3, 2, 1, 1, 1, "same"), ((2, 2, 3, 4, 2),)),
    ("max_pool3d", (2, 3, 3, 2, 2, 1, "same"), ((2, 2, 3, 4, 2),)),
    ("enlarge", (3, 3), ((2, 2, 1, 3),)),
    ("pool_kernel", (2, 3, 3), ()),
    ("identity_kernel", (2, 3, 3), ()),
    ("eye", (3,), ()),
    ("ones", (2, 3), ()),
    ("ones", (), ()),
    ("reduce_sum", (1,), ((2, 3),)),
    ("reduce_mean", (0,), ((2, 3, 2),)),
    ("reshape", (3, 2), ((2, 3),)),
    ("broadcast", (2, 3), ((1, 3),)),
    ("slice", (1, 1, 3), ((2, 4),)),
    ("pad", (1, 1, 2), ((2, 3),)),
    ("batch_norm", (), ((2, 3, 2), (3,), (3,), (3,), (3,))),
    *(
        (name, (), ((2, 3), (2, 3)))
        for name in ("ewmax", "ewmin", "ewpow", "less", "less_or_equal", "equal")
    ),
    ("select", (), ((2, 3), (2, 3), (2, 3))),
    *(
        (name, (), ((2, 3),))
        for name in (
            *("neg", "abs", "sign", "floor", "ceil", "sqrt", "rsqrt", "log", "erf", "sin", "cos"),
            *("softplus", "hard_swish"),
        )
    ),
    ("gelu", ("tanh",), ((2, 3),)),
    ("leaky_relu", ("f0p5",), ((2, 3),)),
    ("elu", ("f1p0",), ((2, 3),)),
    ("swish", ("f1p0",), ((2, 3),)),
    ("hard_sigmoid", ("f0p5", "f0p5"), ((2, 3),)),
    ("clip", ("fm1p0", "f6p0"), ((2, 3),)),
    ("reverse", (1,), ((2, 3),)),
    ("strided", (1, 2), ((2, 5),)),
    ("reduce_max", (1,), ((2, 3),)),
    ("reduce_min", (0,), ((2, 3, 2),)),
    ("layer_norm", (1, "f0p5"), ((2, 3), (3,), (3,))),
    ("softmax", (0,), ((3, 2),)),
)


def test_every_operator_has_a_case():
    assert {case[0] for case in CASES} == {operator.name for operator in OPERATORS}


def _arguments(shapes, samples=2):
    """Stored numbers of the domain and residues of them, one value of each argument."""
    generator = np.random.default_rng(3)
    wide = [generator.integers(0, field.P, (1, samples, int(np.prod(s)))) for s in shapes]
    return wide, tuple(each.astype(np.uint32) for each in wide)


@pytest.mark.parametrize(("operator", "params", "shapes"), CASES)
def test_values_and_fingerprints_are_the_meaning(operator, params, shapes):
    wide, arguments = _arguments(shapes)
    names = [f"x{number}" for number in range(len(shapes))]
    term = Apply(operator, params, tuple(map(Input, names)))
    structure = structure_of(operator, params, shapes)
    values = values_of(structure, arguments)
    for sample in range(2):
        inputs = {
            name: field.packed(each[0, sample]).reshape(shape)
            for name, each, shape in zip(names, wide, shapes, strict=True)
        }
        (wanted,) = evaluate_terms([term], inputs, FieldDomain())
        assert (values[0, sample] == residues(wanted).ravel() % field.P).all()
    (shape,) = fitting(infer_shapes([term], dict(zip(names, shapes, strict=True))))
    keys = fingerprints.keys_of(values.astype(np.uint64), shape, 0)
    if len(shapes) == 2:
        assert (fingerprints.keys_of_table(structure, *arguments, shape, 0)[0, 0] == keys[0]).all()
        assert (fingerprints.keys_of_pairs(structure, *arguments, shape, 0)[0] == keys[0]).all()
    elif shapes:
        found = fingerprints.keys_of_unary(structure, arguments[0], shape, 0, arguments[1:])
        assert (found == keys).all()


def test_fingerprints_of_tables_are_those_of_all_pairs():
    shapes = ((1, 4, 3, 3), (4, 2, 3, 3))
    generator = np.random.default_rng(5)
    a, b = (
        generator.integers(0, field.P, (count, 2, int(np.prod(s)))).astype(np.uint32)
        for count, s in zip((3, 2), shapes, strict=True)
    )
    for activation in ("none", "relu"):
        structure = structure_of("conv2d", (1, 1, "same", activation), shapes)
        table = fingerprints.keys_of_table(structure, a, b, (1, 4, 3, 3), 0)
        for i in range(3):
            for j in range(2):
                pair = fingerprints.keys_of_pairs(
                    structure, a[i : i + 1], b[j : j + 1], (1, 4, 3, 3), 0
                )
                assert (table[i, j] == pair[0]).all()


def test_field():
    generator = np.random.default_rng(1)
    numbers = generator.integers(1, field.P, 50).astype(np.uint64)
    assert (field.multiply(numbers, field.invert(numbers)) == 1).all()
    assert (field.invert(np.zeros(3, np.uint64)) == 0).all()
    assert (residues(field.packed(numbers)) % field.P == numbers).all()
    assert (field.relu(np.array([5, field.P - 5], np.uint64)) == [5, 0]).all()
    a = np.full((2, 500), field.P - 1, np.uint64)
    assert (field.residues_of(field.product(centred(a), centred(a.T))) == 500).all()


def test_prepared_terms_are_evaluated_at_the_values_of_the_inputs():
    lines = ("weights (2, 2): x1 x2", "prepared: ewmul(?x1, ?x2)", "prepared: eye[2]()")
    preset = parse_preset("small", "\n".join(lines))
    _, values = _arguments(((2, 2), (2, 2)))
    both, eye = prepared_values(preset, values)
    assert (both == field.multiply(*values)).all()
    assert (eye == [1, 0, 0, 1]).all()
    assert preset.leaf_shapes == ((2, 2),) * 4
    assert preset.leaf(0) == Input("x1")
    assert preset.leaf(3) == Apply("eye", (2,), ())


@pytest.mark.parametrize(
    ("line", "is_true"),
    [
        ("exp(ewadd(?x, ?y)) == ewmul(exp(?x), exp(?y))", True),
        ("exp(ewsub(?x, ?y)) == ewdiv(exp(?x), exp(?y))", True),
        ("ewdiv(exp(?x), ewadd(ones[2, 3](), exp(?x))) == sigmoid(?x)", True),
        ("relu(ewsub(?x, ?y)) == ewsub(relu(ewsub(?y, ?x)), ewsub(?y, ?x))", True),
        ("relu(scalar_mul(?x, ?s)) == scalar_mul(relu(?x), ?s)", False),
        ("relu(ewmul(?x, ?y)) == ewmul(relu(?x), ?y)", False),
        ("exp(ewmul(?x, ?y)) == ewmul(exp(?x), exp(?y))", False),
    ],
)
def test_exponents_add_up_and_an_order_is_an_order(line, is_true):
    shapes = {"x": (2, 3), "y": (2, 3), "s": ()}
    assert Evaluator(shapes, 7).holds(parse_rule(line)) is is_true


def test_inputs_are_small_whole_numbers_but_for_single_ones():
    generator = np.random.default_rng(0)
    wide = field.random_values(generator, 4, (50, 50)).astype(np.int64)
    centred = (wide + field.P // 2) % field.P - field.P // 2
    assert abs(centred).max() < 2**14
    assert (centred != 0).all()
    assert (centred < 0).any()
    assert (centred > 0).any()
    assert field.random_values(generator, 8, ()).max() > 2**24
