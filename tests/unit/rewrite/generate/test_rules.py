"""Candidate rules: the known ones are among them, false and redundant ones are not."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.rewrite.generate.tiny import TINY, enumerated

from tensorwright.base import UsageError
from tensorwright.rewrite.generate import generate_rules
from tensorwright.rewrite.generate.build import Builder
from tensorwright.rewrite.generate.candidates import distinct_rows, without_common
from tensorwright.rewrite.generate.checkpoint import WorkFolder
from tensorwright.rewrite.generate.enumerate import enumerate_terms, run_of
from tensorwright.rewrite.generate.holds import Evaluator
from tensorwright.rewrite.generate.joint import joint_pairs, joint_rule
from tensorwright.rewrite.generate.preset import Application, Preset, data, weights
from tensorwright.rewrite.prune import has_common_inputs
from tensorwright.rewrite.text import parse_rule, rule_text

_MERGING = Preset(
    "merging",
    (
        *data("x", 2, (2, 3)),
        *weights("w", 2, (3, 4)),
        *data("i", 2, (1, 2, 3, 3)),
        *weights("k", 2, (2, 2, 3, 3)),
    ),
    (
        Application("matmul"),
        Application("conv2d", (1, 1, "same", "none")),
        Application("conv2d", (1, 1, "same", "relu")),
        *(Application(name, (axis,)) for axis in (0, 1) for name in ("concat", "split0", "split1")),
    ),
)


def _texts(rules):
    return {rule_text(rule) for rule in rules}


def test_two_outputs_that_share_an_operator_are_found(tmp_path):
    folder = WorkFolder(tmp_path / "work", run_of(_MERGING, 3, 0), resume=False)
    found = enumerate_terms(_MERGING, 3, folder)
    pairs = joint_pairs(found, 3)
    builder = Builder(found)
    rules = [
        joint_rule(builder, int(a), int(b)) for a, b in zip(pairs.first, pairs.second, strict=True)
    ]
    texts = _texts(rules)
    for left, joined, at in (
        ("matmul(?x1, ?w1), matmul(?x1, ?w2)", "matmul(?x1, concat[1](?w1, ?w2))", "1, 4"),
        ("matmul(?x1, ?w1), matmul(?x2, ?w1)", "matmul(concat[0](?x1, ?x2), ?w1)", "0, 2"),
    ):
        assert f"{left} == split0[{at}]({joined}), split1[{at}]({joined})" in texts
    for activation in ("none", "relu"):
        conv = f"conv2d[1, 1, same, {activation}]"
        joined = f"{conv}(?i1, concat[0](?k1, ?k2))"
        assert (
            f"{conv}(?i1, ?k1), {conv}(?i1, ?k2) == split0[1, 2]({joined}), split1[1, 2]({joined})"
            in texts
        )
    evaluator = Evaluator(_MERGING.shapes, 3)
    assert all(evaluator.holds(rule) for rule in rules)
    assert found.two_outputs > 0


def test_a_common_operator_is_pruned_only_where_any_tensor_may_take_its_place(tmp_path):
    found = enumerated(tmp_path / "work", 3)
    builder = Builder(found)
    rows, _ = distinct_rows(found)
    kept = set(without_common(found, rows, 1).tolist())
    texts = _texts(builder.rule(int(row)) for row in kept)
    assert "relu(relu(?x1)) == relu(?x1)" in texts
    dropped = [builder.rule(int(row)) for row in rows if int(row) not in kept]
    assert dropped
    assert all(has_common_inputs(rule) for rule in dropped)
    assert not any("relu(relu(transpose" in text for text in texts)


def test_one_equality_is_kept_of_those_that_differ_in_names(tmp_path):
    found = enumerated(tmp_path / "work", 2)
    texts = _texts(Builder(found).rule(int(row)) for row in distinct_rows(found)[0])
    names = ("?x1", "?x2")
    both = {f"transpose[1, 0](transpose[1, 0]({name})) == {name}" for name in names}
    assert len(both & texts) == 1


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("relu(relu(?x1)) == relu(?x1)", True),
        ("relu(?x1) == ?x1", False),
        ("ewadd(?x1, ?x2) == ewadd(?x2, ?x1)", True),
        ("matmul(?x1, ?w1), ?x1 == matmul(?x1, ?w1), ?x2", False),
    ],
)
def test_rules_are_evaluated_once_more(text, holds):
    assert Evaluator(TINY.shapes, 4).holds(parse_rule(text)) is holds


def test_known_substitutions_are_found():
    found = generate_rules("taso", 2)
    texts = _texts(found.rules)
    assert "transpose[1, 0](transpose[1, 0](?x1)) == ?x1" in texts
    pooled = "conv2d[1, 1, same, none](?x1, pool_kernel[x1.1, 3, 3]())"
    assert f"{pooled} == avg_pool[3, 3, 1, 1, same](?x1)" in texts
    assert any("enlarge[3, 3]" in text for text in texts)
    counts = [stage.count for stage in found.stages]
    assert counts == sorted(counts, reverse=True)
    assert found.graphs > 11_000
    assert found.two_outputs > 0


def test_a_work_folder_gives_the_same_rules(tmp_path):
    once = generate_rules("elementwise", 1, work=tmp_path / "work")
    again = generate_rules("elementwise", 1, work=tmp_path / "work", resume=True)
    assert (
        _texts(once.rules) == _texts(again.rules) == _texts(generate_rules("elementwise", 1).rules)
    )
    assert np.isfinite(once.graphs)


def test_an_unknown_preset_is_refused():
    with pytest.raises(UsageError, match="no such preset"):
        generate_rules("tosa", 1)
