"""The schedule of a workload that was not tuned: chosen by the time model, the same every time."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.draws import some_of
from tests.targets import AVX2, AVX512, NEON, SSE2, native_target
from tests.unit.tuning.compiled import Case, check_schedule, workloads
from tests.unit.tuning.time_model.small_trees import model_of, random_tree, stump

from tensorwright import schedule
from tensorwright.base import CpuTarget, MachineError, override
from tensorwright.graph import Graph, GraphBuilder
from tensorwright.loop import lower
from tensorwright.machine import machine_of
from tensorwright.pipeline import compile, prepare
from tensorwright.records import MemoryStore, Setting
from tensorwright.tuning import selection
from tensorwright.tuning.features import Featurizer
from tensorwright.tuning.selection.candidates import Candidates, Ranked, choice_cache
from tensorwright.tuning.space import Sketch, default_trace, space_of
from tensorwright.tuning.time_model import ROW_NAMES, Policy, Prediction, TimeModel, save_time_model

NATIVE = native_target()
SMALL = selection.Effort(draws=40, parents=4, children=6)
"""Enough to differ from the rule, and quick."""
ODD = replace(
    NEON, name="odd", vector_bytes=128, vector_registers=7, l1_bytes=0, l2_bytes=0, l3_bytes=0
)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path) -> Iterator[None]:
    with override(home=tmp_path / "home"):
        yield


def wild_model(seed: int = 0, policy: Policy | None = None) -> TimeModel:
    """A model that knows nothing: it finds other candidates good than the rule does."""
    random = np.random.default_rng(seed)
    trees = tuple(random_tree(random, 31, len(ROW_NAMES)) for _ in range(30))
    return model_of(trees, trees[:5], policy or Policy(0.5, 0.0))


def graph_of(operator: str, *shapes: tuple[int, ...], **attributes: object) -> Graph:
    builder = GraphBuilder(operator)
    names = [builder.input(f"x{n}", shape) for n, shape in enumerate(shapes[:1])]
    random = np.random.default_rng(1)
    names += [builder.constant(random.normal(size=s).astype(np.float32)) for s in shapes[1:]]
    return builder.finish((builder.add(operator, *names, **attributes),))


GRAPHS = {
    "matmul": graph_of("matmul", (13, 19), (19, 40)),
    "conv": graph_of("conv", (1, 16, 9, 9), (24, 16, 3, 3), pads=(1, 1, 1, 1)),
    "depthwise": graph_of("conv", (1, 32, 9, 9), (32, 1, 3, 3), groups=32),
    "softmax": graph_of("softmax", (9, 37)),
    "transpose": graph_of("transpose", (18, 7, 21), perm=(2, 0, 1)),
    "sum": graph_of("reduce_sum", (23, 50), axes=(1,)),
    "tanh": graph_of("tanh", (3, 5, 70)),
}


def case_of(name: str, target: CpuTarget = NATIVE) -> Case:
    return workloads(GRAPHS[name], target)[-1]


def predictor_of(
    model: TimeModel, target: CpuTarget = NATIVE, effort: selection.Effort = SMALL, threads: int = 2
) -> selection.Predictor:
    return selection.Predictor(model, machine_of(target, threads), effort)


@pytest.mark.parametrize("name", some_of(GRAPHS, 3, "chosen"))
@pytest.mark.parametrize("target", [AVX512, AVX2, SSE2], ids=str)
@pytest.mark.drawn
def test_chosen_schedules_are_right(name: str, target: CpuTarget) -> None:
    if target.missing_on(NATIVE):
        pytest.skip(f"this machine cannot run {target.name}")
    for workload, arrays in workloads(GRAPHS[name], target):
        for seed in range(2):
            chosen = predictor_of(wild_model(seed), target).best(workload)
            check_schedule((workload, arrays), schedule.format_trace(chosen.trace), target)


@pytest.mark.parametrize("name", GRAPHS)
def test_a_choice_is_expected_to_be_better_than_the_rule(name: str) -> None:
    workload, _ = case_of(name)
    predictor = predictor_of(wild_model())
    chosen = predictor.best(workload)
    assert chosen.estimate is not None
    assert chosen.by_rule is not None
    if chosen.is_by_rule:
        assert chosen.estimate == chosen.by_rule
        assert chosen.trace == default_trace(schedule.state_of(workload), NATIVE)
    else:
        assert _score(chosen.estimate) < _score(chosen.by_rule)
    again = predictor.estimate(workload, chosen.trace)
    assert again is not None
    assert again.seconds == pytest.approx(chosen.estimate.seconds, rel=1e-3)
    assert again.upper_seconds >= again.seconds
    assert predictor.estimate(workload) == chosen.estimate


def _score(estimate: selection.Estimate) -> float:
    return float(np.log2(estimate.seconds) + np.log2(estimate.upper_seconds)) / 2


def test_some_choices_are_not_the_rule() -> None:
    model = wild_model(16)
    chosen = [predictor_of(model, AVX512).best(case_of(name, AVX512)[0]) for name in GRAPHS]
    assert sum(not each.is_by_rule for each in chosen) >= 3


def test_the_rule_stays_unless_something_is_better_by_the_margin() -> None:
    workload, _ = case_of("conv")
    assert predictor_of(wild_model(policy=Policy(0.5, 10.0))).best(workload).is_by_rule
    assert (
        predictor_of(model_of((stump("threads", 9.0, 1.0, 1.0),), policy=Policy(0.0, 9.0)))
        .best(workload)
        .is_by_rule
    )


def test_the_rule_stays_where_the_roofline_disagrees() -> None:
    median = np.array([0.0, -3.0, -1.0, -0.2, -2.0])
    roofline = np.array([1.0, 1.5, 1.0, 0.0, 0.5])

    class Threadless(Ranked):
        def price(self, number: int) -> Prediction:
            return self.prices.of(number)

    nothing: Any = None
    ranked = Threadless(nothing, nothing, Prediction(median, median, roofline), 0.5, nothing)
    assert list(ranked.better_than_rule(Policy(0.5, 0.3, roofline_margin=0.0))) == [4, 2]
    assert list(ranked.better_than_rule(Policy(0.5, 0.3, roofline_margin=0.6))) == [1, 4, 2]


def test_another_algorithm_is_chosen_by_its_own_margin() -> None:
    """Trees that add nothing leave the roofline, which sees fewer multiplications."""
    _, workload, _ = prepare(deep_convolutions(), NATIVE).workloads
    chosen = predictor_of(model_of(policy=Policy(0.5, 10.0, 0.1))).best(workload)
    assert schedule.uses_algorithm(chosen.trace)
    assert not chosen.is_by_rule
    assert chosen.estimate is not None
    assert chosen.by_rule is not None
    assert chosen.estimate.seconds < chosen.by_rule.seconds
    assert predictor_of(model_of(policy=Policy(0.5, 10.0, 10.0))).best(workload).is_by_rule
    without = replace(SMALL, algorithms=0)
    assert not schedule.uses_algorithm(
        predictor_of(model_of(), effort=without).best(workload).trace
    )


@pytest.mark.parametrize(
    ("slower", "threads", "count", "is_parallel"),
    [(3.0, 2, 64, False), (-3.0, 2, 64, True), (3.0, 1, 64, True), (3.0, 2, 6400, True)],
    ids=["expensive threads", "cheap threads", "one thread", "too long"],
)
def test_threads_are_left_out_where_they_cost_more_than_they_save(
    slower: float, threads: int, count: int, is_parallel: bool
) -> None:
    """Trees say by how much (log2) loops on threads are slower than the roofline takes them for."""
    workload, arrays = workloads(graph_of("relu", (count, 512)), NATIVE)[-1]
    trees = (stump("parallel_prod", 1.5, 0.0, slower),)  # log2 of one more than the iterations
    model = model_of(trees, trees, Policy(0.5, 0.3))
    chosen = predictor_of(model, threads=threads).best(workload)
    assert any(isinstance(step, schedule.Parallel) for step in chosen.trace) == is_parallel
    if not is_parallel:
        assert not chosen.is_by_rule
        check_schedule((workload, arrays), schedule.format_trace(chosen.trace), NATIVE)


def deep_convolutions() -> Graph:
    builder = GraphBuilder("deep")
    x = builder.input("x", (1, 256, 14, 14))
    weights = builder.constant(np.ones((256, 256, 3, 3), np.float32))
    for _ in range(3):
        x = builder.add("conv", x, weights, pads=(1, 1, 1, 1))
    return builder.finish((x,))


def test_the_certain_comes_before_the_uncertain() -> None:
    """Two structures that are alike but for the upper trees: with caution, another one wins."""
    workload, _ = case_of("conv", AVX512)
    unsure = stump("num_loops", 3.1, 0.0, 4.0)
    bold, careful = (
        predictor_of(model_of((), (unsure,), Policy(caution, 0.0)), AVX512).best(workload).estimate
        for caution in (0.0, 1.0)
    )
    assert bold is not None
    assert careful is not None
    assert careful.upper_seconds <= bold.upper_seconds
    assert careful.seconds >= bold.seconds


PROGRAM = """
import sys
from tests.unit.tuning.time_model.test_selection import GRAPHS, case_of, predictor_of, wild_model
from tensorwright.schedule import format_trace
for name in GRAPHS:
    chosen = predictor_of(wild_model()).best(case_of(name)[0])
    print(name, chosen.estimate, format_trace(chosen.trace).replace(chr(10), " "))
"""


def test_the_same_choice_in_two_processes(tmp_path: Path) -> None:
    root = Path(__file__).parents[4]
    path = os.pathsep.join([str(root), str(root / "src")])
    texts = []
    for seed in ("1", "2"):
        given = {"PYTHONHASHSEED": seed, "TENSORWRIGHT_HOME": str(tmp_path / seed)}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONPATH": path, **given},
            capture_output=True,
            text=True,
            check=True,
        )
        texts.append(done.stdout)
    assert texts[0] == texts[1]
    assert texts[0].count("\n") == len(GRAPHS)


def test_a_choice_is_remembered_and_kept_on_the_disk() -> None:
    workload, _ = case_of("matmul")
    first, second = predictor_of(wild_model()), predictor_of(wild_model())
    chosen = first.best(workload)
    assert first.best(workload) is chosen
    assert second.best(workload) == chosen
    assert first.counts == {"chosen": 1, "remembered": 1}
    assert second.counts == {"cached": 1}
    cache = choice_cache()
    assert cache is not None
    assert (cache.counts["hits"], cache.counts["misses"], cache.counts["stored"]) == (1, 1, 1)


@pytest.mark.parametrize(
    "other",
    [
        predictor_of(wild_model(1)),
        predictor_of(wild_model(), threads=1),
        predictor_of(wild_model(), effort=replace(SMALL, draws=41)),
        selection.Predictor(wild_model(), machine_of(NATIVE, 2, is_cold=True), SMALL),
        predictor_of(wild_model(), SSE2),
    ],
)
def test_what_a_choice_comes_from_is_in_its_key(other: selection.Predictor) -> None:
    workload, _ = case_of("tanh")
    predictor_of(wild_model()).best(workload)
    other.best(workload)
    assert other.counts == {"chosen": 1}


@pytest.mark.parametrize("damage", [b"", b"TWKERN1\n garbage", None])
def test_a_damaged_entry_is_passed_over(tmp_path: Path, damage: bytes | None) -> None:
    workload, _ = case_of("matmul")
    chosen = predictor_of(wild_model()).best(workload)
    (entry,) = (tmp_path / "home" / "choices").glob("*.kernel")
    content = bytearray(entry.read_bytes())
    content[-9] ^= 4
    entry.write_bytes(content if damage is None else damage)
    again = predictor_of(wild_model())
    assert again.best(workload) == chosen
    assert again.counts == {"chosen": 1}


def test_an_entry_that_means_nothing_is_passed_over() -> None:
    workload, _ = case_of("matmul")
    cache = choice_cache()
    assert cache is not None
    chosen = predictor_of(wild_model()).best(workload)
    (entry,) = cache.folder.glob("*.kernel")
    for text in ("[]", "{}", json.dumps({"trace": "bend(x)", "estimate": None, "by_rule": None})):
        cache.put(entry.stem, text.encode())
        again = predictor_of(wild_model())
        assert again.best(workload) == chosen
        assert again.counts == {"chosen": 1}


def test_without_the_cache_the_choice_is_the_same(tmp_path: Path) -> None:
    workload, _ = case_of("matmul")
    chosen = predictor_of(wild_model()).best(workload)
    with override(kernel_cache=False, home=tmp_path / "other"):
        assert predictor_of(wild_model()).best(workload) == chosen
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("target", [NEON, ODD], ids=str)
@pytest.mark.parametrize("name", GRAPHS)
def test_a_machine_with_unknown_features_gets_a_sensible_schedule(
    name: str, target: CpuTarget
) -> None:
    workload, _ = case_of(name, target)
    for model in (wild_model(), model_of()):
        chosen = predictor_of(model, target, threads=5).best(workload)
        assert lower(schedule.replay(schedule.state_of(workload), chosen.trace)).body
        assert chosen.estimate is not None
        assert 0 < chosen.estimate.seconds < 1


def test_sketches_without_features_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    workload, _ = case_of("conv")
    usual = Featurizer.plan
    asked: dict[str, int] = {}

    def plan(self: Featurizer, sketch: Sketch) -> object:
        if asked.setdefault(schedule.format_trace(sketch.trace), len(asked)) % 2 == 1:
            raise MachineError(stage="test", where="here", reason="none", remedy="none")
        return usual(self, sketch)

    monkeypatch.setattr(Featurizer, "plan", plan)
    chosen = predictor_of(wild_model()).best(workload)
    assert chosen.estimate is not None
    assert len(asked) > 2


def test_without_features_of_the_rule_the_rule_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def plan(self: Featurizer, sketch: object) -> object:
        raise MachineError(stage="test", where="here", reason="none", remedy="none")

    workload, _ = case_of("conv")
    monkeypatch.setattr(Featurizer, "plan", plan)
    chosen = predictor_of(wild_model()).best(workload)
    assert chosen.is_by_rule
    assert chosen.estimate is None


def test_candidates_that_do_not_replay_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    workload, _ = case_of("depthwise", AVX512)
    best = predictor_of(wild_model(16), AVX512, effort=replace(SMALL, tried=3))
    refused: list[schedule.Trace] = []

    def price_exactly(self: Candidates, *traces: schedule.Trace) -> None:
        refused.extend(traces[1:])

    monkeypatch.setattr(Candidates, "price_exactly", price_exactly)
    assert best.best(workload).is_by_rule
    assert len(refused) == 3


def test_a_choice_is_priced_again_as_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where its exact price is no better than the rule's, another is chosen."""
    workload, _ = case_of("depthwise", AVX512)
    first = predictor_of(wild_model(16), AVX512).best(workload)
    assert not first.is_by_rule
    usual = Candidates.price_exactly
    asked: list[schedule.Trace] = []

    def price_exactly(self: Candidates, *traces: schedule.Trace) -> Prediction | None:
        found = usual(self, *traces)
        asked.extend(traces[1:])
        if found is None or first.trace not in traces:
            return found
        return replace(found, median=found.median[[0, 0]], upper=found.upper[[0, 0]])

    monkeypatch.setattr(Candidates, "price_exactly", price_exactly)
    with override(kernel_cache=False):
        again = predictor_of(wild_model(16), AVX512).best(workload)
    assert asked[0] == first.trace
    assert again.trace != first.trace


def test_the_best_few_are_sound_and_differ() -> None:
    """Depthwise: no tile holds blocks of channels, whose open prices are of bounds."""
    workload, _ = case_of("depthwise")
    predictor = predictor_of(wild_model())
    elites = predictor.top(workload, 8)
    traces = [one.candidate.trace for one in elites]
    assert len(set(traces)) == 8
    state = schedule.state_of(workload)
    for text in traces:
        lower(schedule.replay(state, schedule.parse_trace(text)))
    assert predictor.top(workload, 8) == elites
    for one in elites:
        estimate = predictor.estimate(workload, schedule.parse_trace(one.candidate.trace))
        assert estimate is not None
        assert one.estimate.seconds == pytest.approx(estimate.seconds, rel=1e-3)


def test_another_process_finds_the_same_elites(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    save_time_model(wild_model(), path)
    workload, _ = case_of("conv")
    with override(time_model=path):
        predictor = selection.open_predictor(NATIVE, 1)
        assert predictor is not None
        question = predictor.top_question(workload, 4)
    assert pickle.loads(pickle.dumps(question)).answer() == predictor.top(workload, 4)


def test_other_algorithms_are_priced_where_a_space_has_many_sketches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, workload, _ = prepare(deep_convolutions(), NATIVE).workloads
    asked: list[str] = []
    structures = Candidates.structures

    def listen(self: Candidates, sketches: Iterable[Sketch]) -> tuple[Sketch, ...]:
        found = structures(self, sketches)
        asked.extend(sketch.name for sketch in found)
        return found

    monkeypatch.setattr(Candidates, "structures", listen)
    predictor_of(wild_model()).top(workload, 2)
    assert any("winograd" in name for name in asked)


def test_a_search_finds_what_was_predicted_in_its_space() -> None:
    workload, _ = case_of("conv")
    predictor = predictor_of(wild_model())
    space = space_of(schedule.state_of(workload), NATIVE)
    best = predictor.best(workload)
    for trace, decisions in (
        (schedule.format_trace(best.trace), best.decisions),
        *((one.candidate.trace, one.candidate.decisions) for one in predictor.top(workload, 8)),
    ):
        assert space.locate(trace, dict(decisions)) is not None


def test_the_pipeline_says_where_schedules_come_from(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    save_time_model(wild_model(), path)
    workload, _ = case_of("conv")
    with override(time_model=path):
        chosen = selection.Chooser(Setting(NATIVE, 2), MemoryStore()).choose(workload)
        assert chosen.source is selection.Source.MODEL
        assert not chosen.is_tuned
        assert selection.open_predictor(NATIVE, 2) is selection.open_predictor(NATIVE, 2)
        with override(default_schedule="rule"):
            assert selection.open_predictor(NATIVE, 2) is None
            by_rule = selection.Chooser(Setting(NATIVE, 2)).unmeasured(workload)
    assert by_rule.source is selection.Source.RULE
    assert by_rule.trace == default_trace(schedule.state_of(workload), NATIVE)


def test_a_damaged_model_is_told_once_and_the_rule_chooses(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    save_time_model(wild_model(), path)
    path.write_bytes(path.read_bytes()[:-200])
    graph = GRAPHS["matmul"]
    x = np.random.default_rng(0).normal(size=(13, 19)).astype(np.float32)
    with override(time_model=path):
        with pytest.warns(RuntimeWarning, match="by heuristic"):
            executable = compile(graph, threads=1, records=MemoryStore())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert (
                selection.Chooser(Setting(NATIVE, 1)).unmeasured(case_of("conv")[0]).source
                is selection.Source.RULE
            )
    (name,) = graph.constants
    (found,) = executable.run({"x0": x}).values()
    assert found == pytest.approx(x @ graph.constants[name], abs=1e-4)
