"""A new operator of rewriting is one record: the generator finds rules about it at once.

A line of facts makes that quick.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorwright.rewriting import operators
from tensorwright.rewriting.operators.operator import (
    ArgumentRole,
    RewriteOperator,
    plain,
    same_shape,
)
from tensorwright.rewriting.terms import Rule, canonical_rule
from tensorwright.rewriting.text import rule_text
from tensorwright_lab.rule_generation.answers import CALLER
from tensorwright_lab.rule_generation.candidates.congruence import (
    distinct_equalities,
    without_common_subgraphs,
)
from tensorwright_lab.rule_generation.candidates.subsumption import without_subsumed
from tensorwright_lab.rule_generation.candidates.term_builder import TermBuilder
from tensorwright_lab.rule_generation.enumerate.checkpoint import LevelUnits, WorkFolder
from tensorwright_lab.rule_generation.enumerate.enumerate import enumerate_terms, run_of
from tensorwright_lab.rule_generation.fingerprint.structure import structure_of
from tensorwright_lab.rule_generation.generalize.steps import GeneralizationSteps
from tensorwright_lab.rule_generation.operator_facts import (
    FACTS,
    OperatorFacts,
    StructureKind,
    first_points,
    word_of,
)
from tensorwright_lab.rule_generation.preset import Preset, parse_preset


def _rules(preset: Preset, path: Path) -> set[str]:
    folder = WorkFolder(path, run_of(preset, 3, 0))
    found = enumerate_terms(preset, 3, folder)
    each = distinct_equalities(found)
    units = LevelUnits(folder, CALLER, lambda line: None, 3)
    steps = GeneralizationSteps(preset.shapes, 0, units)
    remaining = without_common_subgraphs(found, each, steps.trials)
    rows = without_subsumed(found, each, remaining, units)
    builder = TermBuilder(found)
    rules = steps.holding([builder.rule(int(row)) for row in rows])
    general = steps.general(steps.instances(rules))
    both = [*general, *(Rule(rule.right, rule.left) for rule in general)]
    return {rule_text(canonical_rule(rule)) for rule in both}


@pytest.mark.parametrize(
    ("name", "structure", "expected"),
    [
        ("neg", StructureKind.GATHER, "neg(neg(?x1)) == ?x1"),
        ("abs", StructureKind.POINTWISE, "abs(abs(?x1)) == abs(?x1)"),
        ("neg", StructureKind.ANY, "neg(neg(?x1)) == ?x1"),
        ("neg", StructureKind.GATHER, "relu(relu(?x1)) == relu(?x1)"),
        (
            "neg",
            StructureKind.GATHER,
            "neg(concat[0](?x1, neg(?x2))) == concat[0](neg(?x1), ?x2)",
        ),
    ],
    ids=["linear", "a function", "without facts", "others stay", "with others"],
)
def test_rules_about_it_are_found(name, structure, expected, tmp_path, monkeypatch):
    monkeypatch.setitem(operators._BY_NAME, name, RewriteOperator(name, same_shape, plain(name)))
    monkeypatch.setitem(FACTS, name, OperatorFacts(structure, first_points))
    structure_of.cache_clear()
    preset = parse_preset("signs", f"data (2, 3): x1 x2\ntry: {name}; relu; concat[0]")
    assert expected in _rules(preset, tmp_path / "work")


def test_rules_about_operators_of_any_structure_are_found(tmp_path):
    """Extremes have no structure that fingerprints make use of, folds are windows of any shape."""
    preset = parse_preset("extremes", "data (2, 3): x1 x2\ntry: ewmax; reduce_max[0]; relu")
    found = _rules(preset, tmp_path / "work")
    assert {
        "ewmax(?x1, relu(?x1)) == relu(?x1)",
        "reduce_max[0](relu(?x1)) == relu(reduce_max[0](?x1))",
        "reduce_max[0](ewmax(?x1, ?x2)) == ewmax(reduce_max[0](?x1), reduce_max[0](?x2))",
    } <= found


def test_the_roles_of_arguments_say_what_they_are():
    names = {each.name: each.arguments for each in operators.OPERATORS}
    assert names["conv2d"] == (ArgumentRole.TENSOR, ArgumentRole.KERNEL)
    assert names["scalar_mul"] == (ArgumentRole.TENSOR, ArgumentRole.NUMBER)
    assert [word_of(n) for n in ("split0", "conv2d", "max_pool")] == [
        *("split", "conv", "max-pool")
    ]
