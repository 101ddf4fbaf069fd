"""The rules that ship: readable, current, proved, and true of numbers."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from tests.draws import random_source

from tensorwright import rewriting
from tensorwright.farm import LocalFarm
from tensorwright.rewriting import library
from tensorwright.rewriting.axioms import load_axioms
from tensorwright.rewriting.prove import (
    Basis,
    Problem,
    Proved,
    problems_of,
    prove,
    prove_all,
    sample_shapes,
    stamp_of,
)
from tensorwright.rewriting.prove.instances import sampled_instances
from tensorwright.rewriting.prove.prover import _proof_by_axiom
from tensorwright_lab.rule_generation import generate_rules, presets_of
from tensorwright_lab.rule_generation.derivation import rule_set
from tensorwright_lab.rule_generation.selection.examine import subsuming_rules

LIBRARY = library.load_library()
DOCS = Path(__file__).parents[4] / "docs" / "rules.md"
_POSITIVE = frozenset({"ewdiv", "batch_norm"})


@pytest.fixture(scope="module")
def axioms() -> list[rewriting.Rule]:
    """The rules that are axioms under other names; Z3 confirms the proofs of the others."""
    return [each.rule for each in LIBRARY if _proof_by_axiom(each.rule, load_axioms())]


def test_the_file_is_what_its_rules_say() -> None:
    text = library.shipped_path().read_text(encoding="utf-8")
    assert library.library_text(library.head_of(text.splitlines()), LIBRARY) == text
    assert library.read_library(text.splitlines()) == LIBRARY
    assert len(LIBRARY) >= 100


def test_names_are_names_of_one_rule() -> None:
    names = [each.rule.name for each in LIBRARY]
    assert all(names)
    assert len(set(names)) == len(names)
    for each in LIBRARY:
        assert each.origin
        assert rewriting.parse_rule(rewriting.rule_text(each.rule)) == each.rule


def test_stamps_are_those_of_the_axioms_and_the_prover() -> None:
    """If not, `tensorwright rules generate --shipped -o FILE` writes the file anew."""
    assert {each.rule.stamp for each in LIBRARY} == {stamp_of()}


@pytest.mark.drawn
@pytest.mark.parametrize("part", [18, pytest.param(1, marks=pytest.mark.slow)])
def test_rules_are_proved_again_and_z3_confirms_what_is_no_axiom(
    part: int, axioms: list[rewriting.Rule]
) -> None:
    """In two processes: all axioms under other names, and one of `part` others, which are drawn."""
    confirmed = [each.rule for each in LIBRARY if each.rule not in axioms]
    count = len(confirmed) // part
    drawn = [*axioms, *random_source("proved again").sample(confirmed, count)]
    with LocalFarm(2) as farm:
        outcomes = dict(prove_all(drawn, farm, patience_s=1200.0))
    unproved = [str(each) for each in outcomes.values() if not isinstance(each, Proved)]
    assert unproved == []
    assert len(outcomes) == len(drawn)
    bases = Counter(each.basis for each in outcomes.values() if isinstance(each, Proved))
    assert bases == {Basis.AXIOM: len(axioms), Basis.Z3: count}
    marked = {rule.name for rule in drawn if rule.reassociating}
    proved = [each for each in outcomes.values() if isinstance(each, Proved)]
    assert {each.rule.name for each in proved if each.reassociating} == marked


def test_the_docs_say_how_many_are_axioms_and_how_many_z3_confirms(
    axioms: list[rewriting.Rule],
) -> None:
    text = " ".join(DOCS.read_text(encoding="utf-8").split())
    assert f"{len(axioms)} of the {len(LIBRARY)} shipped rules are of this kind" in text
    assert f"Z3 confirms the other {len(LIBRARY) - len(axioms)}." in text
    outcome = prove(axioms[0])
    assert isinstance(outcome, Proved)
    assert (outcome.basis, outcome.resources) == (Basis.AXIOM, 0)
    assert "it rests on an axiom under other names, Z3 is not asked" in str(outcome)


def test_small_candidates_follow_from_what_ships() -> None:
    """Fewer rules, same power: all that is found with two operators, and is true, is rewritten."""
    shipped = rule_set(each.rule for each in LIBRARY)
    part = presets_of("taso")[0].name
    found = [rule for rule in generate_rules(part, 2).rules if "x1" in rewriting.rule_text(rule)]
    assert len(found) >= 30
    assert [
        rewriting.rule_text(rule) for rule in found if subsuming_rules(rule, shipped) is None
    ] == []


def random_inputs(problem: Problem, seed: int, count: int) -> Iterator[dict[str, np.ndarray]]:
    """Float64 inputs at shapes that satisfy the condition; what is divided by is positive."""
    rule = problem.rule
    generator = np.random.default_rng(seed)
    operators = rewriting.operator_names(*rule.roots)
    for shapes in islice(sample_shapes(problem, seed, largest=5), count):
        values = {name: generator.standard_normal(shape) for name, shape in shapes.items()}
        if operators & _POSITIVE:
            values = {name: np.abs(value) + 0.5 for name, value in values.items()}
        yield values


@pytest.mark.parametrize("rule", [each.rule for each in LIBRARY], ids=lambda rule: rule.name)
def test_both_sides_are_equal_in_numbers(rule: rewriting.Rule) -> None:
    """At the lowest and the highest ranks, two shapes in all; of parameters at some."""
    seed = zlib.crc32(rewriting.rule_text(rule).encode())
    for instance in sampled_instances(rule, 100, seed):
        problems = problems_of(instance)
        chosen = (problems[0], problems[-1]) if len(problems) > 1 else problems
        tried = 0
        for problem in chosen:
            for inputs in random_inputs(problem, seed, 2 // len(chosen)):
                values = rewriting.evaluate_terms(problem.rule.roots, inputs)
                count = len(rule.left)
                for left, right in zip(values[:count], values[count:], strict=True):
                    assert np.isfinite(left).all()
                    scale = np.abs(left).max(initial=1e-300)
                    assert np.abs(left - right).max(initial=0.0) <= 1e-9 * scale
                tried += 1
        if tried:
            return
    pytest.fail("no shapes were found at which it says anything")
