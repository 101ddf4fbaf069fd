"""Rules over many dimensions: merged to few, true of numbers, and refused where nothing merges."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import prod
from pathlib import Path

import numpy as np
import pytest

from tensorwright.rewriting import evaluate_terms, parse_rule, rule_text
from tensorwright.rewriting.operators import merged_runs
from tensorwright.rewriting.prove import (
    Proved,
    Refuted,
    Unknown,
    largest_rank,
    problems_of,
    prove,
    reduced,
    sample_shapes,
)

_TEXT = (Path(__file__).parent / "ranks.txt").read_text(encoding="utf-8")
_MERGED, _APART, _FALSE = (part.strip().splitlines()[1:] for part in _TEXT.split("## "))


def pairs() -> Iterator[tuple[str, str]]:
    lines = [line for line in _MERGED if line]
    yield from zip(lines[::2], map(str.strip, lines[1::2]), strict=True)


@pytest.mark.parametrize(("wide", "narrow"), tuple(pairs()), ids=lambda text: text[:24])
def test_what_nothing_tells_apart_is_merged_and_proved(wide: str, narrow: str) -> None:
    (problem,) = problems_of(parse_rule(wide))
    merged = reduced(problem)
    assert merged is not None
    assert rule_text(merged.rule) == narrow
    assert isinstance(prove(problem.rule, confirm=False), Proved)


@pytest.mark.parametrize("wide", [wide for wide, _ in pairs()], ids=lambda text: text[:24])
def test_merging_changes_no_value(wide: str) -> None:
    """Each side at 5 or 6 dimensions is the merged side at merged inputs, and equals the other."""
    (problem,) = problems_of(parse_rule(wide))
    assert largest_rank(problem) > 4
    merged = reduced(problem)
    assert merged is not None
    joints = dict(merged.joined)
    tried = 0
    for shapes in islice(sample_shapes(problem, 3, largest=3), 3):
        generator = np.random.default_rng(tried)
        inputs = {name: generator.standard_normal(shape) for name, shape in shapes.items()}
        few = {
            name: array.reshape(
                [
                    prod(array.shape[axis] for axis in run)
                    for run in merged_runs(array.ndim, joints[name])
                ]
            )
            for name, array in inputs.items()
        }
        rule = merged.rule
        left, right = evaluate_terms(problem.rule.roots, inputs)
        small = evaluate_terms(rule.roots, few)
        for side, own in zip((left, right), small, strict=True):
            np.testing.assert_allclose(side.ravel(), own.ravel(), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-12)
        tried += 1
    assert tried == 3


def test_stretched_dimensions_merge_with_their_like() -> None:
    """Whether each dimension of b is stretched or not: 32 cases, which merge to 1, 2, 3, 4 or 5."""
    rows = next(text for text in _APART if "tanh" in text)
    merged = [reduced(problem) for problem in problems_of(parse_rule(rows))]
    counts = [0] * 6
    for each in merged:
        ranks = 5 if each is None else 5 - len(dict(each.joined)["x"])
        counts[ranks] += 1
    assert counts == [0, 2, 8, 12, 8, 2]


@pytest.mark.parametrize("text", _APART, ids=lambda text: text[:24])
def test_what_is_told_apart_is_not_proved(text: str) -> None:
    outcome = prove(parse_rule(text), confirm=False)
    assert isinstance(outcome, Unknown)
    assert "tell more than 4 dimensions apart" in outcome.reason


@pytest.mark.parametrize("text", _FALSE, ids=lambda text: text[:24])
def test_what_is_false_stays_refuted(text: str) -> None:
    assert isinstance(prove(parse_rule(text), confirm=False), Refuted)


def test_an_input_that_is_read_twice_is_merged_alike() -> None:
    """Dimensions 0 and 1 change places: both stay, as the third, which is 2, 3 and 4."""
    text = "ewadd(transpose[1, 0, 2, 3, 4](?x), ?x) == ewadd(?x, transpose[1, 0, 2, 3, 4](?x))"
    (problem,) = problems_of(parse_rule(text))
    merged = reduced(problem)
    assert merged is not None
    assert dict(merged.joined) == {"x": frozenset({2, 3})}
    assert "transpose[1, 0, 2](?x)" in rule_text(merged.rule)


def test_axioms_in_a_proof_over_volumes_are_proved_at_their_ranks() -> None:
    """The halves of a join are proved for few dimensions, and so what they do to volumes."""
    both = "conv3d[_d, _h, _v, _pad, _act](?x, concat[0](?v, ?w))"
    rule = parse_rule(
        "conv3d[_d, _h, _v, _pad, _act](?x, ?v), conv3d[_d, _h, _v, _pad, _act](?x, ?w)"
        f" == split0[1, v.0]({both}), split1[1, v.0]({both}) if x.1 = w.1"
    )
    outcome = prove(rule)
    assert isinstance(outcome, Proved)
    assert {"conv-split0-outputs", "split0-concat"} <= set(outcome.axioms)


def test_an_axiom_that_tells_all_dimensions_of_a_volume_apart_proves_nothing() -> None:
    volume = "conv3d[1, 1, 1, same, none](?x, ?w)"
    turned = "transpose[4, 3, 2, 1, 0]"
    outcome = prove(parse_rule(f"relu({turned}({volume})) == {turned}(relu({volume}))"))
    assert isinstance(outcome, Unknown)
    assert "the axiom relu-transpose need not hold" in outcome.reason
    kept = "transpose[0, 1, 3, 4, 2]"
    assert isinstance(
        prove(parse_rule(f"relu({kept}({volume})) == {kept}(relu({volume}))")), Proved
    )


@pytest.mark.parametrize(
    "text",
    [
        "conv3d[1, 1, 1, same, _act](?x, ?w) == conv3d[1, 1, 1, valid, _act](?x, ?w)",
        "conv3d[_d, _h, _v, _pad, _act](?x, ?w) == conv3d[_h, _d, _v, _pad, _act](?x, ?w)",
        "relu(conv3d[_d, _h, _v, _pad, _act](?x, ?w)) == conv3d[_d, _h, _v, _pad, _act](?x, ?w)",
        "conv3d[1, 1, 1, same, none](?x, concat[0](?v, ?w)) == conv3d[1, 1, 1, same, none](?x, ?v)",
    ],
)
def test_what_is_false_of_volumes_is_refuted(text: str) -> None:
    assert isinstance(prove(parse_rule(text)), Refuted)
