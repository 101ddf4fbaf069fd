"""Training of the time model: measured programs as arrays, losses, judgements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tensorwright.base import RecordError, cpu_target
from tensorwright.machine import Rates, machine_of
from tensorwright.pipeline import prepare
from tensorwright.schedule import format_trace, state_of
from tensorwright.tuning import Task
from tensorwright.tuning.features import FEATURE_NAMES, STATEMENT
from tensorwright.tuning.models import RooflineModel
from tensorwright.tuning.space import space_of
from tensorwright.tuning.strategies.sources import ModelGuides
from tensorwright_lab.pretrain.train import command as train_command
from tensorwright_lab.pretraining import (
    CONDITIONS,
    Collector,
    Conditions,
    Measured,
    MeasuredWorkload,
    MeasuringMachine,
    Shares,
    TimeTreeSettings,
    accuracy_of,
    draw_conditions,
    read_features,
    train,
    varied_candidates,
    write_features,
)
from tensorwright_lab.pretraining.programs import Programs, programs_of
from tensorwright_lab.pretraining.time_loss import MedianLoss, UpperLoss, weights_of
from tensorwright_lab.zoo.plausible import draw_network

TARGET = cpu_target("x86-64-avx2")
MACHINE = machine_of(TARGET, 2)
MEASURING = MeasuringMachine("here", {})  # with the rates that are assumed
LANES = FEATURE_NAMES.index("vector_len")
MOVED = [n for n, name in enumerate(FEATURE_NAMES) if "_beyond_" in name]


def _workload(seed: int, programs: int = 12, family: str = "made up") -> MeasuredWorkload:
    """Programs whose time falls with the length of their vectors, and with nothing else; they move
    nothing, or the roofline would not believe it.
    """
    source = np.random.default_rng(seed)
    counts = source.integers(1, 4, programs)
    features = source.uniform(0.0, 8.0, (int(counts.sum()), len(FEATURE_NAMES)))
    features = features.astype(np.float32)
    features[:, MOVED] = 0.0
    first = np.cumsum(counts) - counts
    lanes = source.permutation(np.arange(programs) % 5)
    features[:, LANES] = np.repeat(lanes, counts)
    times_s = 1e-5 * (1 + seed % 3) * 2.0 ** -lanes.astype(float)
    assert len(first) == programs
    is_censored = np.zeros(programs, np.bool_)
    return MeasuredWorkload(_key(seed), "name", family, features, counts, times_s, is_censored, 0)


def _key(seed: int) -> str:
    return f"{seed:08x}{0:08x}"


def _programs(count: int = 6) -> Programs:
    return programs_of((_workload(seed), MACHINE) for seed in range(count))


def test_conditions_are_file_names() -> None:
    for conditions, _ in CONDITIONS:
        assert Conditions.parse(str(conditions)) == conditions
    assert {draw_conditions(seed) for seed in range(200)} == {one for one, _ in CONDITIONS}
    for text in ("native", "native-2t", "native-t-cold", "native-2t-hot", "native-2-cold"):
        with pytest.raises(RecordError, match="its name does not say"):
            Conditions.parse(text)


def test_feature_files_come_back_and_are_refused_when_damaged(tmp_path: Path) -> None:
    path = tmp_path / "features.npz"
    written = [_workload(1), _workload(2, 3)]
    write_features(path, written)
    read = read_features(path)
    assert [each.key for each in read] == [_key(1), _key(2)]
    for one, other in zip(written, read, strict=True):
        assert np.array_equal(one.features, other.features)
        assert np.array_equal(one.times_s, other.times_s)
        assert one.default == other.default
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(RecordError, match=r"features\.npz"):
        read_features(path)


def test_the_time_of_a_program_is_the_sum_over_its_statements() -> None:
    programs = _programs()
    values = np.random.default_rng(0).normal(size=len(programs.base))
    log2_s, shares = programs.total(values)
    seconds = np.exp2(programs.base + values)
    for number in range(len(programs)):
        own = programs.owner == number
        assert np.log2(seconds[own].sum()) == pytest.approx(log2_s[number])
        assert shares[own] == pytest.approx(seconds[own] / seconds[own].sum())
    assert programs.workloads == 6
    assert int(programs.is_default.sum()) == 6


@pytest.mark.parametrize("loss", [MedianLoss(0.0), UpperLoss(0.9)])
def test_slopes_are_those_of_squares(loss: MedianLoss | UpperLoss) -> None:
    programs = _programs()
    weights = weights_of(programs)
    predicted = programs.log2_s + np.random.default_rng(1).uniform(-1.5, 1.5, len(programs))
    gradient, hessian = loss.slopes(programs, weights, predicted)
    error = predicted - programs.log2_s
    price = 1.0 if isinstance(loss, MedianLoss) else 2 * np.where(error < 0, 0.9, 0.1)
    assert gradient == pytest.approx(weights * price * error)
    assert hessian == pytest.approx(weights * price * np.ones(len(error)))


def test_the_common_error_of_a_workload_counts_less() -> None:
    programs = _programs()
    weights = weights_of(programs)
    common, _ = MedianLoss(2.0).slopes(programs, weights, programs.log2_s + 0.5)
    assert common == pytest.approx(0.5 * weights)
    own = np.zeros(len(programs))
    own[3] = 0.5
    pulled, _ = MedianLoss(2.0).slopes(programs, weights, programs.log2_s + own)
    assert pulled[3] > 1.2 * 0.5 * weights[3]


def test_a_censored_program_pulls_upwards_only() -> None:
    programs = _programs()
    programs.is_censored[:] = True
    weights = weights_of(programs)
    for loss in (MedianLoss(), UpperLoss()):
        slow, _ = loss.slopes(programs, weights, programs.log2_s + 1.0)
        fast, _ = loss.slopes(programs, weights, programs.log2_s - 1.0)
        assert not slow.any()
        assert (fast < 0).all()


def test_accuracy_counts_what_choices_cost() -> None:
    programs = _programs()
    right = accuracy_of(programs, programs.log2_s)
    assert (right.mean, right.most, right.lost, right.pairs) == (1.0, 1.0, 0.0, 1.0)
    wrong = accuracy_of(programs, -programs.log2_s)
    assert wrong.pairs == 0.0
    assert wrong.mean == pytest.approx(16.0)
    assert wrong.lost == 1.0


def test_training_learns_what_programs_have_in_common(tmp_path: Path) -> None:
    conditions = [Conditions("x86-64-avx2", 2, is_cold=True), Conditions("native", 2, is_cold=True)]
    measured = [
        Measured(seed, conditions[seed % 2], MEASURING, _workload(seed, 20, f"family {seed % 5}"))
        for seed in range(40)
    ]
    settings = TimeTreeSettings(
        rounds=20, least_rows=5, learning_rate=0.5, feature_share=1.0, l2=0.1
    )
    trained = train(measured, settings)
    found = dict(trained.accuracies)
    assert found["model"].mean < 1.5 < found["roofline"].mean
    assert found["model"].pairs > 0.95 > found["roofline"].pairs
    unseen = [name for name, _ in trained.accuracies if name.startswith("without")]
    assert len(unseen) == 6
    again = train(measured, settings)
    features = measured[0].workload.features[None, :2]
    machine = MEASURING.under(conditions[0])
    one = trained.model.predict(features, machine)
    assert one.median == pytest.approx(again.model.predict(features, machine).median)
    assert trained.model.statistics["programs"] == 800


def test_what_is_chosen_and_what_is_predicted_are_judged_apart() -> None:
    programs = _programs()
    right = accuracy_of(programs, programs.log2_s)
    worst = accuracy_of(programs, programs.log2_s, -programs.log2_s)
    assert (worst.pairs, worst.spread) == (right.pairs, right.spread)
    assert right.mean == 1.0 < worst.mean


def test_a_family_and_a_target_can_be_left_out() -> None:
    conditions = [Conditions("x86-64-avx2", 2, is_cold=True), Conditions("native", 2, is_cold=True)]
    measured = [
        Measured(seed, conditions[seed % 2], MEASURING, _workload(seed, 20, f"family {seed % 3}"))
        for seed in range(40)
    ]
    settings = TimeTreeSettings(rounds=20, least_rows=5, learning_rate=0.3)
    trained = train(measured, settings, without=("family 1", "native"))
    statistics = trained.model.statistics
    assert statistics["without"] == ["family 1", "native"]
    assert set(statistics["families"]) == {"family 0", "family 2"}
    assert set(statistics["conditions"]) == {"x86-64-avx2-2t-cold"}
    found = dict(trained.accuracies)
    assert found["without family 1, native"].workloads == 26
    kept = [seed for seed in range(40) if seed % 3 != 1 and seed % 2 == 0]
    keys = trained.model.trained
    assert keys is not None
    assert [seed for seed in range(40) if _key(seed) in keys] == kept
    assert found["without family 1, native"].mean < found["roofline"].mean


def test_varied_candidates_are_the_same_each_time_and_begin_with_the_default() -> None:
    for workload in prepare(draw_network(3), TARGET).workloads:
        state = state_of(workload)
        space = space_of(state, TARGET)
        task = Task(workload)

        def draw(task: Task = task, space: object = space) -> list[str]:
            guide = ModelGuides(lambda: RooflineModel(MACHINE), STATEMENT.open, TARGET)(
                task, space, 1
            )
            found = varied_candidates(task, space, guide, 16, 1, Shares(by_rule=0.5))
            return [each.trace for each in found]

        traces = draw()
        assert traces == draw()
        assert traces[0] == format_trace(space.default_trace)
        assert len(set(traces)) == len(traces) <= 16


def test_collected_programs_train_a_model(tmp_path: Path) -> None:
    native = Conditions("native", 1, is_cold=False)
    with Collector(tmp_path, programs=4) as collector:
        for seed in (0, 1, 2):
            workloads = prepare(draw_network(seed, ["elementwise"]), native.target).workloads
            first = collector.collect(seed, workloads, native)
            assert {record.status.is_timed for record in first} == {True}
            assert collector.collect(seed, workloads, native) == []
    run = CliRunner().invoke(
        train_command, [str(tmp_path), "-o", str(tmp_path / "m"), "--rounds", "3"]
    )
    assert isinstance(run.exception, RecordError)  # these are not the networks of their seeds


def test_a_folder_remembers_the_machine_that_measured_it(tmp_path: Path) -> None:
    native = Conditions("native", 2, is_cold=True)
    this = MeasuringMachine.this()
    assert MeasuringMachine.of(tmp_path).fingerprint == this.fingerprint  # it says nothing
    half = Rates(1e11, 2e10)
    other = MeasuringMachine("another", {"native": half})
    other.write(tmp_path)
    assert MeasuringMachine.of(tmp_path) == other
    assert other.under(native).rates == half
    assert other.under(native).is_cold
    with pytest.raises(RecordError, match="another machine has measured it"):
        this.write(tmp_path)
    with pytest.raises(RecordError, match="another machine"):
        Collector(tmp_path)
    for text in ("", "[]", '{"fingerprint": "x", "rates": {"native": {"flops_per_s": 0}}}'):
        (tmp_path / "machine.json").write_text(text)
        with pytest.raises(RecordError, match="does not describe a machine"):
            MeasuringMachine.of(tmp_path)


def test_machines_are_left_out_in_turn() -> None:
    """The same programs, twice as slow on a machine that does half as much."""
    conditions = Conditions("x86-64-avx2", 2, is_cold=True)
    slow = MeasuringMachine("slow", {"x86-64-avx2": Rates(5e10, 3e10)})
    measured = [
        Measured(seed, conditions, (MEASURING, slow)[seed % 2], _workload(seed, 20))
        for seed in range(20)
    ]
    settings = TimeTreeSettings(rounds=10, least_rows=5, learning_rate=0.3)
    names = [name for name, _ in train(measured, settings).accuracies]
    assert {f"without {MEASURING.fingerprint}", "without slow"} < set(names)
    trained = train(measured, settings, without=("slow",))
    assert dict(trained.accuracies)["without slow"].workloads == 10
