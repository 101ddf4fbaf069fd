"""The enumeration finds what brute force finds, however it is run."""

from __future__ import annotations

from collections import defaultdict
from itertools import product

import numpy as np
import pytest
from tests.lab.rule_generation.tiny import TINY, enumerated, facts

from tensorwright.base import UsageError
from tensorwright.farm import LocalFarm
from tensorwright.rewriting.meaning import evaluate_terms
from tensorwright.rewriting.operators import operator_named
from tensorwright.rewriting.terms import Apply, Input, Term
from tensorwright_lab.rule_generation.candidates.term_builder import TermBuilder
from tensorwright_lab.rule_generation.enumerate import blocks, checkpoint, shards
from tensorwright_lab.rule_generation.enumerate import enumerate as enumerate_module
from tensorwright_lab.rule_generation.enumerate.checkpoint import WorkFolder
from tensorwright_lab.rule_generation.enumerate.plan import result_shape
from tensorwright_lab.rule_generation.fingerprint.field_domain import FieldDomain, residues
from tensorwright_lab.rule_generation.fingerprint.random_inputs import Evaluator
from tensorwright_lab.rule_generation.operator_facts import facts_of_operator


class _Classes:
    """Which class a term is in, read from the enumeration one application at a time."""

    def __init__(self, found):
        table, equal = found.table, found.equal
        self.known = {}
        for number in range(len(TINY.inputs), len(table)):
            row = (table.code[number], table.cut[number], table.a[number], table.b[number])
            self.known[tuple(map(int, row))] = number
        batch = equal.batch
        for row, number in zip(
            zip(batch.code, batch.cut, batch.a, batch.b, strict=True), equal.of, strict=True
        ):
            self.known[tuple(map(int, row))] = int(number)

    def of(self, term: Term):
        """A class, or the application itself where it is alone in its class."""
        if isinstance(term, Input):
            return [each.name for each in TINY.inputs].index(term.name)
        is_split = term.operator.startswith("split")
        params = term.params[:1] if is_split else term.params
        code = next(
            at
            for at, each in enumerate_(TINY.applications)
            if (each.operator, each.params) == (term.operator, params)
        )
        place = term.params[1] if is_split else 0
        args = [self.of(arg) for arg in term.args]
        row = (code, place, *args, *[-1] * (2 - len(args)))
        if row not in self.known and facts_of_operator(term.operator).is_commutative:
            row = (code, place, *sorted(args))
        return self.known.get(row, row)


def enumerate_(items):
    return zip(range(len(items)), items, strict=True)


def _terms_by_size(values_of):
    """All terms of up to two operators, shared ones counted once, and their values."""
    sizes = [[Input(each.name) for each in TINY.inputs]]
    for size in (1, 2):
        new = []
        pairs = [
            (a, b) for left in range(size) for a, b in product(sizes[left], sizes[size - 1 - left])
        ]
        for each in TINY.applications:
            arity = operator_named(each.operator).arity
            if arity == 0 and size == 1:
                new.append(Apply(each.operator, each.params, ()))
            if each.operator.startswith("split"):
                joined = [t for t in sizes[size - 1] if isinstance(t, Apply)]
                new += [
                    Apply(each.operator, (0, len(values_of(t.args[0]))), (t,))
                    for t in joined
                    if t.operator == "concat"
                ]
            elif arity == 1:
                new += [Apply(each.operator, each.params, (t,)) for t in sizes[size - 1]]
            elif arity == 2:
                new += [
                    Apply(each.operator, each.params, (a, b))
                    for a, b in pairs
                    if values_of(a).tobytes() != values_of(b).tobytes()
                ]
        sizes.append([term for term in new if values_of(term) is not None])
    return [term for group in sizes for term in group]


def test_every_equality_of_two_operators_is_found(tmp_path):
    found = enumerated(tmp_path / "work", 2)
    domain, generator = FieldDomain(), np.random.default_rng(5)
    inputs = {each.name: domain.random(each.shape, generator) for each in TINY.inputs}
    shapes, known = {Input(each.name): each.shape for each in TINY.inputs}, {}

    def values_of(term):
        if term in known:
            return known[term]
        if isinstance(term, Apply):
            application = next(e for e in TINY.applications if e.operator == term.operator)
            own = tuple(shapes[arg] for arg in term.args)
            shape = result_shape(application, term.params, own)
            if shape is None:
                return None
            shapes[term] = shape
        known[term] = residues(evaluate_terms([term], inputs, domain)[0])
        return known[term]

    classes, groups = _Classes(found), defaultdict(set)
    terms = _terms_by_size(values_of)
    for term in terms:
        value = values_of(term)
        groups[value.shape, value.tobytes()].add(classes.of(term))
    assert len(terms) > 300
    assert all(len(group) == 1 for group in groups.values())


def test_every_equality_holds_at_other_inputs(tmp_path):
    found = enumerated(tmp_path / "work", 3)
    builder, domain = TermBuilder(found), FieldDomain()
    inputs = {e.name: domain.random(e.shape, np.random.default_rng(11)) for e in TINY.inputs}
    rows = range(0, len(found.equal), max(1, len(found.equal) // 300))
    for row in rows:
        rule = builder.rule(row)
        left, right = evaluate_terms(rule.roots, inputs, domain)
        assert (residues(left) == residues(right)).all(), rule


def test_the_number_of_workers_changes_nothing(tmp_path, monkeypatch):
    alone = enumerated(tmp_path / "alone", 3)
    monkeypatch.setattr(checkpoint, "_FEW", 0)
    monkeypatch.setattr(blocks, "_CHUNK_EFFORT", 500.0)
    with LocalFarm(2) as farm:
        together = enumerated(tmp_path / "together", 3, farm)
        monkeypatch.setattr(LocalFarm, "shares_files", False)  # as machines of a farm
        sent = enumerated(tmp_path / "sent", 3, farm)
    assert facts(alone) == facts(together) == facts(sent)


def test_a_sample_tries_less_of_the_later_levels(tmp_path, monkeypatch):
    whole = enumerated(tmp_path / "whole", 3)
    monkeypatch.setattr(enumerate_module, "WHOLE_LEVELS", 1)
    part = enumerated(tmp_path / "part", 3, sample=3)
    monkeypatch.setattr(checkpoint, "_FEW", 0)
    with LocalFarm(2) as farm:
        assert facts(part) == facts(enumerated(tmp_path / "together", 3, farm, sample=3))
    builder, evaluator = TermBuilder(part), Evaluator(TINY.shapes, 1)
    assert len(part.equal) > 100
    assert all(evaluator.holds(builder.rule(row)) for row in range(len(part.equal)))
    assert part.applications[0] == whole.applications[0]
    assert part.applications[1] == pytest.approx(whole.applications[1] / 3, rel=0.2)
    assert part.applications[2] == pytest.approx(whole.applications[2] / 3, rel=0.3)
    assert part.applications[2] < part.graphs < whole.graphs
    with pytest.raises(UsageError, match="another run"):
        enumerated(tmp_path / "part", 3)


def test_chunks_and_owners_of_any_size_give_the_same(tmp_path, monkeypatch):
    large = enumerated(tmp_path / "large", 3)
    for name, value in (
        ("_CHUNK_EFFORT", 50.0),
        ("_PIECE", 64),
        ("_PIECE_EFFORT", 9.0),
        ("_ROWS", 16),
        ("_PAIRS", 16),
    ):
        monkeypatch.setattr(blocks, name, value)
    monkeypatch.setattr(shards, "MOST_WORDS", 100)
    small = enumerated(tmp_path / "small", 3)
    assert facts(large) == facts(small)


@pytest.mark.parametrize("saves", [1, 2, 3, 5, 9, 17])
def test_an_interrupted_run_goes_on(tmp_path, monkeypatch, saves):
    whole = enumerated(tmp_path / "whole", 3)
    monkeypatch.setattr(blocks, "_CHUNK_EFFORT", 100.0)
    left = [saves]
    plain = WorkFolder.save_unit

    def save(self, name, result):
        plain(self, name, result)
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(WorkFolder, "save_unit", save)
    with pytest.raises(KeyboardInterrupt):
        enumerated(tmp_path / "work", 3)
    resumed = enumerated(tmp_path / "work", 3)
    assert facts(resumed) == facts(whole)
