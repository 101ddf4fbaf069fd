"""The model that proposes: rows of decisions, what it learns from records, what it draws."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.unit.tuning.helpers import matmul, padded_convolution, workload_of

from tensorwright.base import RecordError, cpu_target
from tensorwright.machine import machine_of
from tensorwright.records import Record, Status
from tensorwright.schedule import Workload, state_of
from tensorwright.tuning.population import Population, make_space_tables, sample
from tensorwright.tuning.space import Kind, Space, space_of
from tensorwright.tuning.strategies import choose_strategy
from tensorwright.tuning.strategies.annealing import AnnealingOptions
from tensorwright.tuning.strategies.evolution import EvolutionOptions
from tensorwright.tuning.task import Task
from tensorwright_lab import proposing
from tensorwright_lab.strategies import RandomGuide

TARGET = cpu_target("x86-64-avx2")
MACHINE = machine_of(TARGET, 2)
SMALL = proposing.WayTreeSettings(rounds=30, least_rows=2, leaves=8)
CONVOLUTION = workload_of(padded_convolution((1, 8, 8, 16), 32))


def space_for(workload: Workload) -> Space:
    return space_of(state_of(workload), TARGET)


def records_of(space: Space, population: Population, times_s: list[float]) -> list[Record]:
    return [
        Record("w", "t", "h", 2, one.trace, (time_s,), Status.OK, decisions=one.decisions)
        for one, time_s in zip(population.candidates(space), times_s, strict=True)
    ]


def wide_examples(
    workload: Workload, seed: int = 0
) -> tuple[proposing.DecisionTables, proposing.Examples]:
    """Records in which the fast schedules are those with the largest unroll depths."""
    space = space_for(workload)
    tables = make_space_tables(space)
    drawn = sample(tables, 60, np.random.default_rng(seed))
    drawn = drawn.take(drawn.first_of_each())
    times_s = []
    for sketch, genes in zip(drawn.sketch, drawn.genes, strict=True):
        own = space.sketches[int(sketch)].choices
        depths = [
            int(gene)
            for choice, gene in zip(own, genes, strict=False)
            if choice.kind is Kind.UNROLL
        ]
        times_s.append(1e-3 * 2.0 ** -float(sum(depths)))
    decisions = proposing.DecisionTables(workload, space, MACHINE)
    return decisions, proposing.examples_of(
        decisions, records_of(space, drawn, times_s), np.random.default_rng(0)
    )


@pytest.fixture(scope="module")
def model() -> proposing.ProposingModel:
    parts = [wide_examples(each, seed)[1] for each in (matmul(), matmul(64)) for seed in range(6)]
    return proposing.fit(proposing.Examples.joined(parts), SMALL, {"workloads": 2})


def test_rows_are_numbers_of_fixed_length_for_all_workloads() -> None:
    for workload in (matmul(), matmul(48), CONVOLUTION):
        decisions = proposing.DecisionTables(workload, space_for(workload), MACHINE)
        assert decisions.structures.shape == (len(decisions.space.sketches), len(proposing.COLUMNS))
        for number, sketch in enumerate(decisions.space.sketches):
            prefix = proposing.Prefix.begun(decisions.sketch(number), 3)
            for position, choice in enumerate(sketch.choices):
                rows = decisions.rows(number, position, prefix)
                assert rows.shape == (3, len(choice.values), len(proposing.COLUMNS))
                assert np.isfinite(rows).all()


def column(rows: np.ndarray, name: str) -> list[float]:
    return [float(number) for number in rows[..., proposing.COLUMNS.index(name)].ravel()]


def test_rows_tell_what_is_decided() -> None:
    space = space_for(matmul(64))
    decisions = proposing.DecisionTables(matmul(64), space, MACHINE)
    number = next(n for n, s in enumerate(space.sketches) if s.choices[0].names[0] == "c_i_1")
    sketch = space.sketches[number]
    table = decisions.sketch(number)
    first = decisions.rows(number, 0, proposing.Prefix.begun(table, 1))[0]
    values = sketch.choices[0].values
    assert column(first, "value_0") == pytest.approx([np.log2(row[-1]) for row in values])
    assert column(first, "product") == pytest.approx([np.log2(np.prod(row)) for row in values])
    assert set(column(first, "extent")) == {6.0}
    assert sum(column(first, "is_by_rule")) == 1.0
    assert set(column(first, "is_tile")) == {1.0}
    assert set(column(first, "inner_spatial")) == {0.0}
    one = np.array([len(values) - 1])
    then = proposing.Prefix.begun(table, 1).then(table.choices[0], one)
    second = decisions.rows(number, 1, then)[0]
    assert set(column(second, "inner_spatial")) == {np.float32(np.log2(values[-1][-1]))}
    limit = sketch.limits[0]
    assert set(limit.names) >= {sketch.choices[0].names[-1], sketch.choices[1].names[-1]}
    room = np.log2(limit.most) - np.log2(values[-1][-1])
    taken = [np.log2(row[-1]) for row in sketch.choices[1].values]
    assert column(second, "room") == pytest.approx([room - each for each in taken], abs=1e-5)


def test_good_schedules_are_followed_and_bad_ones_are_not() -> None:
    space = space_for(matmul())
    tables = make_space_tables(space)
    drawn = sample(tables, 40, np.random.default_rng(3), np.array([0]))
    drawn = drawn.take(drawn.first_of_each()[:3])
    decisions = proposing.DecisionTables(matmul(), space, MACHINE)
    records = records_of(space, drawn, [1.0, 1.05, 9.0])
    found = proposing.examples_of(decisions, records, np.random.default_rng(0))
    width = len(space.sketches[0].choices)
    assert len(found) == 2 * width + 1
    assert found.weights[:width] == pytest.approx([found.weights[0]] * width)
    assert found.weights[0] > found.weights[width]
    assert found.taken.sum() == pytest.approx(len(found))
    starts = np.cumsum(found.counts) - found.counts
    taken = [
        int(found.taken[a : a + n].argmax()) for a, n in zip(starts, found.counts, strict=True)
    ]
    assert taken[:width] == drawn.genes[0, :width].tolist()
    assert taken[width : 2 * width] == drawn.genes[1, :width].tolist()
    assert taken[-1] == 0


def test_records_of_other_spaces_and_failures_teach_nothing() -> None:
    decisions = proposing.DecisionTables(matmul(), space_for(matmul()), MACHINE)
    records = [
        Record("w", "t", "h", 2, "unroll(c, i)", (1.0,), Status.OK),
        Record("w", "t", "h", 2, "", (), Status.CRASHED),
    ]
    assert not len(proposing.examples_of(decisions, records, np.random.default_rng(0)))


def test_what_is_learned_of_one_workload_holds_for_another(model: proposing.ProposingModel) -> None:
    _, unseen = wide_examples(CONVOLUTION, 9)
    likely = unseen.likelihood(model.scores(unseen.rows))
    assert likely > 1.2 * unseen.likelihood(np.zeros(len(unseen.rows)))


def depths(space: Space, population: Population) -> float:
    """The mean of what share of the deepest the unroll depths are."""
    found = [
        gene / (len(choice.values) - 1)
        for sketch, genes in zip(population.sketch, population.genes, strict=True)
        for choice, gene in zip(space.sketches[int(sketch)].choices, genes, strict=False)
        if choice.kind is Kind.UNROLL
    ]
    return float(np.mean(found))


def test_draws_follow_the_model_and_keep_to_the_limits(model: proposing.ProposingModel) -> None:
    space = space_for(CONVOLUTION)
    tables = make_space_tables(space)
    decisions = proposing.DecisionTables(CONVOLUTION, space, MACHINE)
    drawn = proposing.draw(model, decisions, tables, 100, np.random.default_rng(0))
    assert len(drawn.population) > 80
    assert tables.valid(drawn.population).all()
    even = sample(tables, 100, np.random.default_rng(0))
    assert depths(space, drawn.population) > depths(space, even) + 0.2
    chances = proposing.log_chances(model, decisions, drawn.population)
    np.testing.assert_allclose(drawn.log_chance, chances, rtol=1e-5, atol=1e-4)
    again = proposing.draw(model, decisions, tables, 100, np.random.default_rng(0))
    assert again.population.keys.tolist() == drawn.population.keys.tolist()
    only = proposing.draw(
        model, decisions, tables, 30, np.random.default_rng(0), allowed=np.array([1])
    )
    assert set(only.population.sketch.tolist()) == {1}


def test_chances_add_up_to_one(model: proposing.ProposingModel) -> None:
    space = space_for(matmul())
    smallest = min(space.sketches, key=lambda sketch: sketch.size if sketch.choices else 1e9)
    alone = Space((smallest,))
    decisions = proposing.DecisionTables(matmul(), alone, MACHINE)
    counts = [len(choice.values) for choice in smallest.choices]
    genes = np.indices(counts).reshape(len(counts), -1).T.astype(np.int64)
    every = Population(np.zeros(len(genes), np.int32), genes)
    assert np.exp(proposing.log_chances(model, decisions, every)).sum() == pytest.approx(
        1.0, abs=1e-4
    )


def test_the_first_proposals_are_likely_and_differ(model: proposing.ProposingModel) -> None:
    space = space_for(matmul(64))
    tables = make_space_tables(space)
    proposer = proposing.ModelProposer(model, Task(matmul(64)), tables, MACHINE)
    first = proposer.first(16, np.random.default_rng(0))
    assert len(first.first_of_each()) == len(first) == 16
    decisions = proposing.DecisionTables(matmul(64), space, MACHINE)
    plain = proposer.draw(16, np.random.default_rng(0))
    best = proposer.first(16, np.random.default_rng(0), variety=0.0)
    chances = [
        float(proposing.log_chances(model, decisions, each).mean()) for each in (best, plain)
    ]
    assert chances[0] > chances[1]


@pytest.mark.parametrize(
    "options",
    [
        EvolutionOptions(population=64, generations=0, proposed_share=1.0, start_share=0.0),
        AnnealingOptions(
            chains=64, steps=1, proposed_share=1.0, start_share=0.0, random_first=0, patience=0
        ),
    ],
)
def test_searches_start_from_what_is_proposed(
    model: proposing.ProposingModel, options: EvolutionOptions | AnnealingOptions
) -> None:
    task, space = Task(CONVOLUTION), space_for(CONVOLUTION)
    found = []
    for proposers in (None, proposing.ModelProposers(model, MACHINE)):
        factory = choose_strategy(
            options, lambda t, s, seed: RandomGuide(seed), make_proposer=proposers
        )
        strategy = factory(task, space, 0)
        found.append(strategy.promising(np.random.default_rng(0), 24))  # type: ignore[attr-defined]
    assert depths(space, found[1]) > depths(space, found[0]) + 0.1


def test_a_model_is_kept_as_plain_data(model: proposing.ProposingModel, tmp_path: Path) -> None:
    file = tmp_path / "model.npz"
    proposing.save_proposing_model(model, file)
    again = proposing.load_proposing_model(file)
    _, unseen = wide_examples(CONVOLUTION)
    assert (again.scores(unseen.rows) == model.scores(unseen.rows)).all()
    assert dict(again.statistics) == {"workloads": 2}
    content = file.read_bytes()
    proposing.save_proposing_model(again, file)
    assert file.read_bytes() == content


def test_a_damaged_file_is_refused(model: proposing.ProposingModel, tmp_path: Path) -> None:
    file = tmp_path / "model.npz"
    proposing.save_proposing_model(model, file)
    content = file.read_bytes()
    random = np.random.default_rng(0)
    for place in random.integers(0, len(content), 40).tolist():
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(random.integers(0, 8))
        file.write_bytes(bytes(damaged))
        try:
            found = proposing.load_proposing_model(file)
        except RecordError:
            continue
        _, unseen = wide_examples(matmul())
        assert (found.scores(unseen.rows) == model.scores(unseen.rows)).all()
    for wrong in (b"", b"PK", content[: len(content) // 2], b"{}"):
        file.write_bytes(wrong)
        with pytest.raises(RecordError, match="train it again"):
            proposing.load_proposing_model(file)
    with pytest.raises(RecordError):
        proposing.load_proposing_model(tmp_path / "none.npz")
