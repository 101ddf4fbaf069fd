"""Presets: well-typed, what `taso` means, and what the families of `full` are there to find."""

from __future__ import annotations

import re

import pytest

from tensorwright.base import UsageError
from tensorwright.rewriting.operators import OPERATORS
from tensorwright.rewriting.terms import Apply, Input, Rule
from tensorwright.rewriting.text import rule_text
from tensorwright_lab.rule_generation import PRESET_NAMES, generate_rules, presets_of
from tensorwright_lab.rule_generation.fingerprint.random_inputs import Evaluator
from tensorwright_lab.rule_generation.preset import parse_preset
from tensorwright_lab.rule_generation.presets import preset_named

FULL = presets_of("full")


@pytest.mark.parametrize("preset", FULL, ids=lambda preset: preset.name)
def test_parts_are_well_typed(preset):
    names = [each.name for each in preset.inputs]
    assert len(set(names)) == len(names)
    assert len(preset.leaf_shapes) == len(preset.inputs) + len(preset.prepared)
    known = {operator.name: operator for operator in OPERATORS}
    for each in preset.applications:
        assert known[each.operator].arity - len(each.operands) <= 2
        assert set(each.operands) <= set(names)
    assert len(set(preset.applications)) == len(preset.applications)


LISTED = {
    *("ewmax", "ewmin", "ewpow", "less", "less_or_equal", "equal", "select", "clip", "elu", "erf"),
    *("abs", "ceil", "cos", "floor", "gelu", "hard_sigmoid", "hard_swish", "leaky_relu", "log"),
    *("neg", "rsqrt", "sign", "sin", "softplus", "sqrt", "swish", "reduce_max", "reduce_min"),
    *("layer_norm", "softmax", "reverse", "strided"),
}
"""Operators whose rules are listed by hand and as schemas: none of them are enumerated."""


def test_full_has_every_operator_but_those_of_listed_rules():
    used = {each.operator for preset in FULL for each in preset.applications}
    assert used | LISTED == {operator.name for operator in OPERATORS}
    assert not used & LISTED


def test_taso_is_the_released_generator_and_the_rest_of_its_paper():
    released, windows = presets_of("taso")
    assert len(released.inputs) == 20
    convolutions = {a.params for a in windows.applications if a.operator == "conv2d"}
    assert convolutions == {
        (stride, stride, padding, activation)
        for stride in (1, 2)
        for padding in ("same", "valid")
        for activation in ("none", "relu")
    }
    kernels = {each.shape[2:] for each in (*released.inputs, *windows.inputs) if each.is_weight}
    assert kernels >= {(1, 1), (1, 3), (3, 1), (3, 3)}
    for operator in ("concat", "split0", "split1"):
        axes = {a.params[0] for a in windows.applications if a.operator == operator}
        assert axes == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("datum (2, 3): x1", "preset wrong: a preset has no line 'datum (2, 3): x1'"),
        ("try on weights: relu", "`try` of relu has no option 'on weights'"),
    ],
)
def test_a_line_that_says_nothing_of_a_preset_is_refused(line, reason):
    with pytest.raises(ValueError, match=re.escape(reason)):
        parse_preset("wrong", line)


def test_names():
    assert PRESET_NAMES[:2] == ("taso", "full")
    assert presets_of("grouped") == (preset_named("grouped"),)
    with pytest.raises(UsageError) as caught:
        presets_of("ful")
    assert "full" in caught.value.remedy
    with pytest.raises(UsageError) as caught:
        presets_of("nothing like it")
    assert "taso" in caught.value.remedy


MINUS_ONE = "ewsub(ewsub(ones(), ones()), ones())"
ROWS = "x1.0*x1.1"
STACK = "broadcast[x1.0, x1.2, x2.1](reshape[1, x1.2, x2.1](?x2))"
WANTED = {
    "elementwise": (
        f"ewadd(?x1, scalar_mul(?x2, {MINUS_ONE})) == ewsub(?x1, ?x2)",
        f"relu(scalar_mul(?x1, {MINUS_ONE})) == ewsub(relu(?x1), ?x1)",
        f"scalar_mul(tanh(?x1), {MINUS_ONE}) == tanh(scalar_mul(?x1, {MINUS_ONE}))",
        "ewdiv(?x1, ones[x1.0, x1.1]()) == ?x1",
    ),
    "batched": (
        f"reshape[{ROWS}, x2.1](matmul(?x1, {STACK})) == matmul(reshape[{ROWS}, x2.0](?x1), ?x2)",
    ),
    "reductions": (
        "matmul(?x1, ones[x1.1, 1]()) == reduce_sum[1](?x1)",
        "reduce_sum[0](matmul(?x1, ?x2)) == matmul(reduce_sum[0](?x1), ?x2)",
        "reduce_mean[1](?x1) == ?x1 if x1.1 = 1",
    ),
}


@pytest.mark.parametrize("name", WANTED)
def test_families_find_what_they_are_there_for(name):
    found = {rule_text(rule) for rule in generate_rules(name, 2).rules}
    assert set(WANTED[name]) - found == set()


@pytest.mark.parametrize("number", [0, 1])
def test_merged_groups_are_the_same_convolution(number):
    preset = preset_named("grouped")
    kernel = Input(("g1", "d1")[number])
    sides = (
        Apply("conv2d", (1, 1, "same", "relu"), (Input("i1"), weight))
        for weight in (kernel, preset.prepared[number])
    )
    left, right = sides
    assert Evaluator(preset.shapes, 0).holds(Rule((left,), (right,)))


@pytest.mark.parametrize(("number", "weight"), [(0, "w1"), (1, "d1")])
def test_a_normalisation_is_folded_into_a_kernel(number, weight):
    preset = preset_named("normalization")
    operands = tuple(map(Input, ("scale1", "bias1", "mean1", "variance1")))

    def convolved(kernel):
        return Apply("conv2d", (1, 1, "same", "none"), (Input("i1"), kernel))

    normal = Apply("batch_norm", (), (convolved(Input(weight)), *operands))
    folded = Apply("ewadd", (), (convolved(preset.prepared[number]), preset.prepared[3]))
    assert Evaluator(preset.shapes, 0).holds(Rule((normal,), (folded,)))
