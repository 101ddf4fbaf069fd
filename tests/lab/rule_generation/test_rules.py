"""Candidate rules: the known ones are among them, false and redundant ones are not."""

from __future__ import annotations

import pytest
from tests.lab.rule_generation.tiny import TINY, enumerated, units_in

from tensorwright.base import UsageError
from tensorwright.farm import LocalFarm
from tensorwright.rewriting.terms import Apply, Input, input_names, substitute
from tensorwright.rewriting.text import parse_rule, rule_text
from tensorwright_lab.rule_generation import generate_rules, presets_of, remove_work
from tensorwright_lab.rule_generation.answers import CALLER
from tensorwright_lab.rule_generation.candidates import multi_root, subsumption
from tensorwright_lab.rule_generation.candidates.congruence import (
    distinct_equalities,
    without_common_subgraphs,
)
from tensorwright_lab.rule_generation.candidates.subsumption import without_subsumed
from tensorwright_lab.rule_generation.candidates.term_builder import TermBuilder
from tensorwright_lab.rule_generation.enumerate.checkpoint import LevelUnits, WorkFolder
from tensorwright_lab.rule_generation.enumerate.enumerate import enumerate_terms, run_of
from tensorwright_lab.rule_generation.fingerprint.random_inputs import Evaluator
from tensorwright_lab.rule_generation.operator_facts import operator_count
from tensorwright_lab.rule_generation.preset import parse_preset

_MERGING = parse_preset(
    "merging",
    """
data (2, 3): x1 x2
weights (3, 4): w1 w2
data (1, 2, 3, 3): i1 i2
weights (2, 2, 3, 3): k1 k2
try: matmul; conv2d[1, 1, same, none]; conv2d[1, 1, same, relu]
try: concat[0]; split0[0]; split1[0]; concat[1]; split0[1]; split1[1]
""",
)


def _trials(rules, shapes):
    evaluator = Evaluator(shapes, 1)
    return [evaluator.holds(rule) for rule in rules]


def _texts(rules):
    return {rule_text(rule) for rule in rules}


def test_two_outputs_that_share_an_operator_are_found(tmp_path):
    folder = WorkFolder(tmp_path / "work", run_of(_MERGING, 3, 0))
    found = enumerate_terms(_MERGING, 3, folder)
    pairs = multi_root.multi_root_pairs(found, 3)
    builder = TermBuilder(found)
    rules = [
        multi_root.multi_root_rule(builder, int(a), int(b))
        for a, b in zip(pairs.first, pairs.second, strict=True)
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


def test_a_pair_that_contains_a_smaller_one_is_left_out(tmp_path):
    lines = ("data (2, 3): x1", "weights (3, 4): w1 w2")
    tried = "try: matmul; relu; concat[1]; split0[1]; split1[1]"
    preset = parse_preset("activated", "\n".join((*lines, tried)))
    found = enumerate_terms(preset, 4, WorkFolder(tmp_path / "work", run_of(preset, 4, 0)))
    pairs, builder = multi_root.multi_root_pairs(found, 4), TermBuilder(found)
    texts = _texts(
        multi_root.multi_root_rule(builder, int(a), int(b))
        for a, b in zip(pairs.first, pairs.second, strict=True)
    )
    joined = "matmul(?x1, concat[1](?w1, ?w2))"
    merged = f"split0[1, 4]({joined}), split1[1, 4]({joined})"
    assert f"matmul(?x1, ?w1), matmul(?x1, ?w2) == {merged}" in texts
    assert not any("relu(matmul(?x1, concat" in text for text in texts)
    assert pairs.count > len(texts)


def test_a_common_operator_is_pruned_only_where_any_tensor_may_take_its_place(tmp_path):
    found = enumerated(tmp_path / "work", 3)
    builder = TermBuilder(found)
    each = distinct_equalities(found)
    rows, kept = each.row, set(without_common_subgraphs(found, each, _trials).row.tolist())
    texts = _texts(builder.rule(int(row)) for row in kept)
    assert "relu(relu(?x1)) == relu(?x1)" in texts
    dropped = [builder.rule(int(row)) for row in rows if int(row) not in kept]
    assert dropped
    assert all(multi_root.has_common_inputs(rule) for rule in dropped)
    assert not any("relu(relu(transpose" in text for text in texts)


def test_one_equality_is_kept_of_those_that_differ_in_names(tmp_path):
    found = enumerated(tmp_path / "work", 2)
    texts = _texts(TermBuilder(found).rule(int(row)) for row in distinct_equalities(found).row)
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


def test_known_substitutions_are_found(tmp_path):
    (preset, *_) = presets_of("taso")
    folder = WorkFolder(tmp_path / "work", run_of(preset, 2, 0))
    found = enumerate_terms(preset, 2, folder)
    each = distinct_equalities(found)
    remaining = without_common_subgraphs(found, each, _trials)
    units = LevelUnits(folder, CALLER, print, 2)
    rows = without_subsumed(found, each, remaining, units)
    texts = _texts(TermBuilder(found).rule(int(row)) for row in rows)
    convolved = "conv2d[1, 1, same, none]"
    for wanted in (
        "transpose[1, 0](transpose[1, 0](?x1)) == ?x1",
        f"{convolved}(?i1, pool_kernel[4, 3, 3]()) == avg_pool[3, 3, 1, 1, same](?i1)",
        f"{convolved}(?i1, enlarge[3, 3](?w7)) == {convolved}(?i1, ?w7)",
        "ewmul(?i1, ones[2, 4, 5, 5]()) == ?i1",
        "split0[0, 2](concat[0](?i1, ?i2)) == ?i1",
        "relu(relu(?i1)) == relu(?i1)",
    ):
        assert wanted in texts
    assert "concat[1](concat[1](?x1, ?x2), ?x3) == concat[1](?x1, concat[1](?x2, ?x3))" in texts
    assert not any("concat[1](?x1, ?x2), ?x1" in text for text in texts)


def _match(pattern, term, binding):
    """Whether a term is an instance of a pattern, with what is bound so far."""
    if isinstance(pattern, Input):
        return binding.setdefault(pattern.name, term) == term
    if not isinstance(term, Apply) or pattern.operator != term.operator:
        return False
    if pattern.params != term.params:
        return False
    return all(_match(p, t, binding) for p, t in zip(pattern.args, term.args, strict=True))


def _rewritten(term, rules):
    """All terms that one use of a rule makes of a term."""
    for left, right in rules:
        binding = {}
        if _match(left, term, binding) and set(input_names(right)) <= set(binding):
            yield substitute(right, binding)
    if isinstance(term, Apply):
        for at, arg in enumerate(term.args):
            for other in _rewritten(arg, rules):
                args = (*term.args[:at], other, *term.args[at + 1 :])
                yield Apply(term.operator, term.params, args)


def _follows(rule, rules):
    """Whether uses of rules lead from one side to the other through terms of four operators."""
    (start,), (goal,) = rule.left, rule.right
    reached, new = {start}, [start]
    while new and len(reached) < 4000:
        found = {other for term in new for other in _rewritten(term, rules)}
        new = [term for term in found - reached if operator_count(term) <= 4]
        reached.update(new)
        if goal in reached:
            return True
    return False


def test_what_is_left_out_follows_from_what_is_kept(tmp_path):
    found = enumerated(tmp_path / "work", 3)
    each = distinct_equalities(found)
    remaining = without_common_subgraphs(found, each, _trials)
    kept = without_subsumed(found, each, remaining, units_in(tmp_path / "units"))
    assert len(kept) < len(remaining.row) * 0.7
    builder = TermBuilder(found)
    rules = []
    for row in kept.tolist():
        rule = builder.rule(row)
        rules += [(rule.left[0], rule.right[0]), (rule.right[0], rule.left[0])]
    dropped = [
        builder.rule(row) for row in sorted(set(remaining.row.tolist()) - set(kept.tolist()))
    ]
    plain = [rule for rule in dropped if "split" not in rule_text(rule)]
    assert len(plain) > 20
    for rule in plain[:: max(1, len(plain) // 20)]:
        assert _follows(rule, rules), rule_text(rule)


def test_all_steps_give_rules_for_all_shapes(tmp_path):
    work = tmp_path / "work"
    once = generate_rules("elementwise", 1, work=work)
    texts = _texts(once.rules)
    assert any("ewadd(?x1, ?x2) == ewadd(?x2, ?x1)" in text for text in texts)
    counts = [stage.count for stage in once.stages]
    assert counts == sorted(counts, reverse=True)
    again = generate_rules("elementwise", 1, work=work)
    assert texts == _texts(again.rules)
    remove_work(work, "elementwise")
    assert not work.exists()


def test_an_unknown_preset_is_refused():
    with pytest.raises(UsageError, match="no such preset"):
        generate_rules("tosa", 1)


def test_uses_of_rules_are_the_same_in_units(tmp_path, monkeypatch):
    found = enumerated(tmp_path / "work", 3)
    each = distinct_equalities(found)
    remaining = without_common_subgraphs(found, each, _trials)
    wanted = without_subsumed(found, each, remaining, units_in(tmp_path / "caller"))
    monkeypatch.setattr(subsumption, "_FEW", 1)
    monkeypatch.setattr(subsumption, "_ROWS", 7)
    monkeypatch.setattr(subsumption, "_EFFORT", 1e6)
    with LocalFarm(2) as farm:
        units = units_in(tmp_path / "units", farm)
        assert without_subsumed(found, each, remaining, units).tolist() == wanted.tolist()
    assert units.folder.has("facts-3")
    assert units.folder.has_unit("uses-3-3-1")
    resumed = units_in(tmp_path / "units")
    assert without_subsumed(found, each, remaining, resumed).tolist() == wanted.tolist()
