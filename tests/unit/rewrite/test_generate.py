"""The generator: structures are what operators mean, and known substitutions are found."""

from __future__ import annotations

import numpy as np
import pytest

from tensorwright.expr import FieldDomain, residues
from tensorwright.rewrite.generate import generate_rules
from tensorwright.rewrite.generate.field import P, matmul
from tensorwright.rewrite.generate.fingerprints import keys_of, keys_of_table
from tensorwright.rewrite.generate.kernels import values_of
from tensorwright.rewrite.generate.structure import structure_of
from tensorwright.rewrite.meaning import evaluate_terms, infer_shapes
from tensorwright.rewrite.terms import Apply, Input
from tensorwright.rewrite.text import rule_text

CASES = (
    ("matmul", (), ((2, 3), (3, 4))),
    ("ewadd", (), ((2, 3), (2, 3))),
    ("ewmul", (), ((2, 3), (2, 3))),
    ("scalar_mul", (), ((2, 3), ())),
    ("relu", (), ((2, 3),)),
    ("transpose", (1, 0), ((2, 3),)),
    ("concat", (1,), ((2, 3), (2, 2))),
    ("split1", (1, 1), ((2, 3),)),
    ("conv2d", (1, 1, "same", "none"), ((2, 2, 3, 4), (3, 2, 3, 1))),
    ("conv2d", (2, 2, "valid", "relu"), ((1, 4, 5, 5), (4, 2, 3, 3))),
    ("avg_pool", (3, 3, 1, 1, "same"), ((2, 2, 3, 4),)),
    ("max_pool", (3, 3, 2, 2, "same"), ((2, 2, 3, 4),)),
    ("enlarge", (3, 3), ((2, 2, 1, 3),)),
    ("pool_kernel", (2, 3, 3), ()),
    ("identity_kernel", (2, 3, 3), ()),
)


@pytest.mark.parametrize(("operator", "params", "shapes"), CASES)
def test_values_and_fingerprints_equal_the_meaning(operator, params, shapes):
    generator = np.random.default_rng(3)
    domain = FieldDomain()
    inputs = {f"x{n}": domain.random(shape, generator) for n, shape in enumerate(shapes)}
    term = Apply(operator, params, tuple(Input(name) for name in inputs))
    (wanted,) = evaluate_terms([term], inputs, domain)
    flat = [(residues(x).reshape(1, 1, -1) % P).astype(np.uint32) for x in inputs.values()]
    arguments = tuple(np.repeat(x, 2, axis=1) for x in flat)
    structure = structure_of(operator, params, shapes)
    values = values_of(structure, arguments)
    assert (values[0, 0] == residues(wanted).ravel() % P).all()
    if len(shapes) == 2:
        (shape,) = infer_shapes([term], dict(zip(inputs, shapes, strict=True)))
        table = keys_of_table(structure, *arguments, shape, 0)
        assert (table[0, 0] == keys_of(values.astype(np.uint64), shape, 0)[0]).all()


def test_matrix_products_are_exact():
    a = np.full((2, 500), P - 1, np.uint64)
    assert (matmul(a, a.T) == 500).all()


def test_known_substitutions_are_found():
    found = {rule_text(rule) for rule in generate_rules("taso", 2).rules}
    assert "transpose[1, 0](transpose[1, 0](?x1)) == ?x1" in found
    pooled = "conv2d[1, 1, same, none](?x1, pool_kernel[x1.1, 3, 3]())"
    assert f"{pooled} == avg_pool[3, 3, 1, 1, same](?x1)" in found
