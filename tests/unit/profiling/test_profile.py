"""Profiles: sums of made-up times, and of small networks that run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.runtime.networks import CHAIN, COUNT, HOSTED, SIZE, executable

import tensorwright
from tensorwright import profiling
from tensorwright.base import InputError, ModelError, UsageError
from tensorwright.cli.profile import _cells, _roofline, summary_lines
from tensorwright.expr import compute, placeholder
from tensorwright.graph import Graph, GraphBuilder
from tensorwright.machine import Ceilings, Level
from tensorwright.runtime import Executable
from tensorwright.runtime.measuring import CallCosts

CEILINGS = Ceilings(1, 1e9, (Level("L2", 1e6, 10e9), Level("memory", float("inf"), 1e9)))
COSTS = CallCosts(clock_s=1e-7, step_s=1e-8, enter_s=1e-6, threads_s=0.0)


def flip(arrays: Any, attributes: Any) -> Any:
    return (np.flip(arrays[0], attributes["axis"]),)


def hosted() -> Executable:
    return executable(HOSTED, hosts={"flip": flip}, threads=1)


def made_up(
    program: Executable, networks_s: list[float], steps_s: list[list[float]]
) -> profiling.Profile:
    samples = profiling.Samples(tuple(networks_s), tuple(map(tuple, steps_s)))
    return profiling.make_profile(program, samples, CEILINGS, CEILINGS, COSTS)


@pytest.fixture
def report() -> profiling.Profile:
    """Steps of 2, 4, 6 and 8 us, and a clock of 0.1 us, which host steps do not read."""
    times = [[2.1e-6, 4e-6, 6.1e-6, 8.1e-6]] * 2 + [[9e-6, 4e-6, 6.1e-6, 8.1e-6]]
    return made_up(hosted(), [25e-6, 24e-6, 90e-6], times)


def test_times_are_medians_without_the_clock(report: profiling.Profile) -> None:
    assert [step.time_s for step in report.steps] == pytest.approx([2e-6, 4e-6, 6e-6, 8e-6])
    assert report.network_s == 25e-6
    assert report.runs == 3
    assert [step.kind.value for step in report.steps] == ["kernel", "host", "kernel", "copy"]


def test_the_sum_of_the_steps_and_what_is_left(report: profiling.Profile) -> None:
    assert report.steps_s == pytest.approx(20e-6)
    assert sum(step.share for step in report.steps) == pytest.approx(0.8)
    assert report.outside_s == pytest.approx(5e-6)
    assert report.entering_s == pytest.approx(2e-6)  # before and after the host step
    assert report.fluctuation_s == pytest.approx(0.0)
    assert report.unexplained_s == pytest.approx(3e-6)
    assert report.outside_s == pytest.approx(
        report.entering_s + report.fluctuation_s + report.unexplained_s
    )


@pytest.mark.parametrize(
    ("networks_s", "enter_s"),
    [
        ([15e-6] * 3, 1e-6),  # the steps take 20 us, longer than the run
        ([25e-6] * 3, 40e-6),  # to enter native code takes longer than the run
    ],
)
def test_parts_that_do_not_add_up_are_not_shown(
    report: profiling.Profile, networks_s: list[float], enter_s: float
) -> None:
    steps_s = [[2.1e-6, 4e-6, 6.1e-6, 8.1e-6]] * 3
    unsteady = replace(
        made_up(hosted(), networks_s, steps_s), costs=replace(COSTS, enter_s=enter_s)
    )
    assert report.adds_up
    assert not unsteady.adds_up
    assert profiling.profile_values(unsteady)["adds_up"] is False
    text = "\n".join(summary_lines(unsteady))
    assert "too unsteady to split the time" in text
    assert "beyond the steps" not in text
    limits = next(line for line in text.splitlines() if line.startswith("limited by: "))
    assert "%" not in limits


def test_rests_within_the_noise_are_shown_in_nanoseconds() -> None:
    report = made_up(hosted(), [20.1e-6] * 3, [[2.1e-6, 4e-6, 6.1e-6, 8.1e-6]] * 3)
    rest = replace(report, costs=replace(COSTS, enter_s=0.0), fluctuation_s=-6.94e-18)
    assert rest.adds_up
    outside = next(line for line in summary_lines(rest) if "beyond the steps" in line)
    assert "+0.1 us beyond the steps' medians: +0 as steps are slower now and then" in outside


def faster(report: profiling.Profile, times: float, **changes: object) -> profiling.Profile:
    """The first step takes so many times less than the roofline allows."""
    first, *others = report.steps
    assert first.bounds.roofline_s > 0
    time_s = first.bounds.roofline_s / times
    return replace(report, steps=(replace(first, time_s=time_s, **changes), *others))  # type: ignore[arg-type]


def test_only_what_winograd_computes_is_above_the_roofline_by_it(report: profiling.Profile) -> None:
    assert not any("above" in line for line in summary_lines(report))
    (line,) = (
        each
        for each in summary_lines(faster(report, 2.0, saves_by="Winograd's algorithm"))
        if "above" in each
    )
    assert "above 100%: 1 step; Winograd's algorithm" in line


def test_another_step_above_the_roofline_says_that_the_roofline_is_too_low(
    report: profiling.Profile,
) -> None:
    assert not faster(report, 1.1).above_roofline
    above = faster(report, 8.0)
    assert [step.number for step in above.above_roofline] == [0]
    text = "\n".join(summary_lines(above))
    assert "Winograd" not in text
    assert "? above 115%: 1 step; peak and bandwidths were measured too low" in text
    assert "  tensorwright doctor" in text.splitlines()
    assert _cells(above.steps[0], True)[6] == ">100%?"
    assert not _cells(report.steps[0], True)[6].endswith("?")


@pytest.mark.parametrize(
    ("trace", "expected"),
    [
        ("split(y, i, [8])", ""),
        ("use_algorithm(y, winograd4)\nsplit(y, i, [8])", "Winograd's algorithm"),
        ("use_algorithm(y, im2col)", ""),
        ("skip_zeros(y, padded, p)", "skipping zeros"),
        ("of another version(y)", ""),
    ],
)
def test_which_schedules_take_fewer_operations(trace: str, expected: str) -> None:
    row = {"key": "k", "tuned": True, "trace": trace}
    assert profiling.measure._schedules({"schedules": json.dumps([row])}) == {"k": (True, expected)}


def test_a_nearer_cache_is_a_reason_for_what_moves_data_only(report: profiling.Profile) -> None:
    moving = faster(report, 2.0, bounds=profiling.Bounds(arithmetic_s=1e-7, cache_s=1e-6))
    assert any("nearer cache" in line for line in summary_lines(moving))
    computing = faster(report, 2.0, bounds=profiling.Bounds(arithmetic_s=1e-6, cache_s=1e-7))
    assert not any("nearer cache" in line for line in summary_lines(computing))


@pytest.mark.usefixtures("unassumed")
def test_the_roofline_is_measured_again_while_a_step_is_above_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TENSORWRIGHT_HOME", str(tmp_path))
    found: list[float] = []

    def measured(target: object, threads: int) -> Ceilings:
        """Far too low, but for the third time."""
        found.append(1e15 if len(found) == 2 else 1.0)
        return Ceilings(threads, found[-1], (Level("memory", float("inf"), found[-1]),))

    monkeypatch.setattr(profiling.measure, "measure_ceilings", measured)
    report = tensorwright.profile(executable(CHAIN, threads=1), repeats=2)
    assert found == [1.0, 1.0, 1e15]
    assert not report.above_roofline
    assert report.state is not None
    assert report.state.kept is None
    assert report.ceilings.flops_per_s == 1e15
    again = tensorwright.profile(executable(CHAIN, threads=1), repeats=2)
    assert len(found) == 4
    assert again.ceilings.flops_per_s == 1e15
    assert again.state is not None
    assert "this machine reaches 0% of the" in again.state.warning


def test_runs_in_which_some_step_is_always_slow() -> None:
    times = [[9e-6, 1e-6, 1e-6, 1e-6], [1e-6, 9e-6, 1e-6, 1e-6], [1e-6, 1e-6, 9e-6, 1e-6]]
    report = made_up(executable(CHAIN, threads=1), [13e-6] * 3, times)
    assert report.steps_s == pytest.approx(4e-6 - 4e-7)
    assert report.fluctuation_s == pytest.approx(8e-6)
    assert report.entering_s == pytest.approx(1e-6)


def test_rates_and_shares_of_the_roofline(report: profiling.Profile) -> None:
    first, host, _, copy = report.steps
    assert first.flops_per_s == pytest.approx(COUNT / 2e-6)
    assert first.bytes_per_s == pytest.approx(2 * SIZE / 2e-6)
    assert first.bounds.arithmetic_s == pytest.approx(COUNT / 1e9)
    assert first.bounds.cache_s == pytest.approx(2 * SIZE / 10e9)
    assert first.roofline_share == pytest.approx(max(COUNT / 1e9, 2 * SIZE / 10e9) / 2e-6)
    assert (host.flops, host.bytes_moved, host.bottleneck) == (
        0,
        2 * SIZE,
        profiling.Bottleneck.HOST,
    )
    assert (copy.bytes_moved, copy.bottleneck) == (2 * SIZE, profiling.Bottleneck.CODE)
    least_s = sum(min(step.bounds.roofline_s, step.time_s) for step in report.steps)
    assert report.roofline_share == pytest.approx(least_s / 25e-6)


def test_no_share_of_the_roofline_is_above_one(report: profiling.Profile) -> None:
    for saves_by, why in (("Winograd's algorithm", "fewer operations"), ("", "nearer cache")):
        above = faster(report, 1.72, saves_by=saves_by)
        values = profiling.profile_values(above)
        first, *others = values["steps"]
        assert first["roofline_share"] == 1.0
        assert why in first["above_roofline"]
        assert all(each["above_roofline"] == "" for each in others)
        assert 0 < values["roofline_share"] <= 1
        assert ">100%" in _roofline(above.steps[0])


def test_shares_by_bottleneck_add_up(report: profiling.Profile) -> None:
    shares = report.share_by_bottleneck()
    assert dict(shares)[profiling.Bottleneck.HOST] == pytest.approx(4 / 25)
    assert sum(share for _, share in shares) == pytest.approx(0.8)
    assert [share for _, share in shares] == sorted((s for _, s in shares), reverse=True)


def test_orders_and_groups(report: profiling.Profile) -> None:
    assert [step.number for step in report.by_time()] == [3, 2, 1, 0]
    chain = made_up(executable(CHAIN, threads=1), [9e-6], [[1e-6, 2e-6, 3e-6, 1e-6]])
    groups = chain.by_workload()
    assert [(group.label, group.count) for group in groups] == [
        ("add", 2),
        ("double again", 1),
        ("double x", 1),
    ]
    assert groups[0].time_s == pytest.approx(4e-6 - 2e-7)
    assert groups[0].flops == 2 * COUNT
    assert groups[0].share == pytest.approx((4e-6 - 2e-7) / 9e-6)
    assert sum(group.time_s for group in groups) == pytest.approx(chain.steps_s)


def test_a_step_that_took_no_time_has_no_rates() -> None:
    report = made_up(executable(CHAIN, threads=1), [0.0], [[0.0] * 4])
    assert [step.flops_per_s for step in report.steps] == [0.0] * 4
    assert report.roofline_share == 0.0
    json.dumps(profiling.profile_values(report), allow_nan=False)


def spans(trace: dict[str, Any], track: int) -> Iterator[dict[str, Any]]:
    return (each for each in trace["traceEvents"] if each["ph"] == "X" and each["tid"] == track)


def test_a_chrome_trace_parses(report: profiling.Profile) -> None:
    trace = json.loads(json.dumps(profiling.chrome_trace(report), allow_nan=False))
    (network,) = spans(trace, 1)
    steps = list(spans(trace, 2))
    assert [step["name"] for step in steps] == [step.label for step in report.steps]
    assert network["dur"] == pytest.approx(25.0)
    ends = [step["ts"] + step["dur"] for step in steps]
    assert [step["ts"] for step in steps[1:]] == pytest.approx(ends[:-1])
    assert ends[-1] == pytest.approx(20.0)
    assert steps[1]["cat"] == "host operator"
    assert steps[0]["args"]["flops"] == COUNT
    assert trace["otherData"]["steps_us"] == pytest.approx(20.0)
    for event in trace["traceEvents"]:
        assert event["ph"] in "XCM"
        assert {"name", "pid", "args"} <= event.keys()
        assert event["ph"] == "M" or event["ts"] >= 0
    counters = [each["ts"] for each in trace["traceEvents"] if each["ph"] == "C"]
    assert counters == pytest.approx([0.0, *ends])


def test_plain_values_name_every_step_once(report: profiling.Profile) -> None:
    values = json.loads(json.dumps(profiling.profile_values(report), allow_nan=False))
    assert [step["number"] for step in values["steps"]] == [0, 1, 2, 3]
    assert sum(step["time_us"] for step in values["steps"]) == pytest.approx(values["steps_us"])
    assert values["levels"][-1] == {"name": "memory", "size_bytes": None, "gbytes_per_s": 1.0}


def network() -> Graph:
    """relu(x @ w) under another shape, times another matrix."""
    builder = GraphBuilder("small")
    x = builder.input("x", (4, 16))
    weights = np.random.default_rng(0).standard_normal((16, 16)).astype(np.float32)
    y = builder.add("relu", builder.add("matmul", x, builder.constant(weights, "w")))
    flat = builder.add("reshape", y, shape=(8, 8))
    return builder.finish([builder.add("matmul", flat, builder.constant(weights[:8, :8], "v"))])


def test_a_network_is_profiled_as_it_runs() -> None:
    report = tensorwright.profile(network(), repeats=3, threads=1)
    assert report.runs == 3
    assert [step.kind for step in report.steps] == [profiling.StepKind.KERNEL] * 2
    step = report.steps[0]
    assert step.label == "matmul_relu"
    assert step.outputs
    assert step.flops >= 2 * 4 * 16 * 16
    assert step.is_tuned is False
    assert 0 < step.time_s < 1
    assert [view.operator for view in report.views] == ["reshape"]


def test_a_saved_executable_knows_its_steps(tmp_path: Path) -> None:
    program = tensorwright.compile(network(), threads=1)
    program.save(tmp_path / "small.tw")
    inputs = {"x": np.ones((4, 16), np.float32)}
    direct = tensorwright.profile(program, inputs=inputs, repeats=1)
    loaded = tensorwright.profile(tmp_path / "small.tw", threads=1, repeats=1)
    for report in (direct, loaded):
        assert report.views == direct.views
        assert [(s.label, s.outputs, s.workload, s.is_tuned) for s in report.steps] == [
            (s.label, s.outputs, s.workload, s.is_tuned) for s in direct.steps
        ]


def test_an_expression_is_profiled() -> None:
    x = placeholder("x", (64,))
    report = tensorwright.profile(compute("y", (64,), lambda i: x[i] + 1.0), repeats=1, threads=1)
    assert [(step.outputs, step.is_tuned) for step in report.steps] == [(("y",), False)]


def test_a_kernel_too_short_for_threads_is_not_limited_by_one() -> None:
    costs = CallCosts(clock_s=0.0, step_s=0.0, enter_s=0.0, threads_s=1e-6)
    one = Ceilings(1, COUNT / 1e-6, (Level("memory", float("inf"), 1e12),))
    two = Ceilings(2, 4 * one.flops_per_s, one.levels)
    samples = profiling.Samples((9e-6,), ((0.9e-6, 1.5e-6, 1.5e-6, 1.5e-6),))
    report = profiling.make_profile(executable(CHAIN, threads=2), samples, two, one, costs)
    expected = [profiling.Bottleneck.ARITHMETIC, *[profiling.Bottleneck.ONE_THREAD] * 3]
    assert [step.bottleneck for step in report.steps] == expected


def test_several_threads_cost_their_start() -> None:
    """Nothing where a busy neighbour has their cores: then the call does without them."""
    report = tensorwright.profile(network(), repeats=1, threads=2)
    assert report.threads == 2
    assert 0 <= report.costs.threads_s < 1e-3


def test_bad_arguments_are_refused(tmp_path: Path) -> None:
    program = executable(CHAIN, threads=1)
    with pytest.raises(UsageError, match="0 runs cannot be timed"):
        tensorwright.profile(program, repeats=0)
    with pytest.raises(InputError):
        tensorwright.profile(program, repeats=1, inputs={"q": np.zeros(COUNT, np.float32)})
    with pytest.raises(ModelError):
        tensorwright.profile(tmp_path / "none.onnx", repeats=1)
