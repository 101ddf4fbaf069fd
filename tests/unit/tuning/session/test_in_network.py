"""Schedules are compared inside the network; the choice is kept until something is measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.targets import native_target

from tensorwright.drivers.sized_network import choose_together, sized_program
from tensorwright.drivers.tune import as_in_network, search_networks, setting_of
from tensorwright.graph import GraphBuilder, Partition, random_inputs
from tensorwright.machine import detect_hardware
from tensorwright.pipeline import finish, prepare
from tensorwright.records import (
    MemoryStore,
    NetworkChoice,
    Record,
    Setting,
    Status,
    load_choice,
    load_last_choice,
    load_thread_limits,
    save_choice,
)
from tensorwright.runtime import KernelStep, choose_teams
from tensorwright.schedule import format_trace, parse_trace, state_of
from tensorwright.tuning import session
from tensorwright.tuning.selection import Chooser, Source
from tensorwright.tuning.session import in_network
from tensorwright.tuning.session.result import TOO_SHORT, compare_with_untuned
from tensorwright.tuning.space import space_of

TARGET = native_target()


def network() -> Partition:
    builder = GraphBuilder("small")
    x = builder.input("x", (1, 16, 12, 12))
    source = np.random.default_rng(0)
    for _ in range(2):
        weights = source.standard_normal((16, 16, 3, 3)).astype(np.float32)
        w = builder.constant(weights)
        (x,) = builder.apply("conv", (x, w), pads=(1, 1, 1, 1))
        (x,) = builder.apply("relu", (x,))
    return prepare(builder.finish((x,)), TARGET)


def slow_and_usual(parts: Partition) -> dict[str, tuple[str, ...]]:
    """For each workload a schedule that does nothing, and the one by rule."""
    found: dict[str, tuple[str, ...]] = {}
    for workload in parts.workloads:
        state = state_of(workload)
        found[workload.key] = "", format_trace(space_of(state, TARGET).default_trace)
    return found


def test_the_faster_schedules_are_chosen() -> None:
    parts = network()
    options = slow_and_usual(parts)
    found = in_network.choose_in_network(parts, options, Setting(TARGET, 1))
    assert found is not None
    choice, result = found.choice, found.result
    assert choice.now_s < choice.before_s
    assert dict(choice.traces) == {key: traces[1] for key, traces in options.items()}
    assert result.whole is not None
    assert result.whole.speed_up > 1
    assert result.traces == choice.traces
    assert [key for key, _ in result.workloads] == [each.key for each in parts.workloads]
    assert all(not compared.is_same for _, compared in result.workloads)


def test_stopping_gives_no_choice() -> None:
    parts = network()
    found = in_network.choose_in_network(
        parts, slow_and_usual(parts), Setting(TARGET, 1), should_stop=lambda: True
    )
    assert found is None


def test_kernels_that_gain_nothing_from_threads_run_on_one() -> None:
    parts = network()
    program = finish(parts, TARGET, 2, MemoryStore())
    slow = program.with_plan(choose_teams(program.plan, limits={0: 1, 1: 1}))
    inputs = random_inputs(parts.graph)
    limits = in_network.choose_threads(parts, slow, inputs, 2.0)
    assert limits is not None
    assert {most for _, most in limits} <= {0, 1}
    assert in_network.choose_threads(parts, program, inputs, 2.0, should_stop=lambda: True) is None
    alone = finish(parts, TARGET, 1, MemoryStore())
    assert in_network.choose_threads(parts, alone, inputs, 2.0) == ()


def test_measured_threads_are_kept_with_the_choice_and_come_into_the_plan() -> None:
    parts = network()
    keys = [workload.key for workload in parts.workloads]
    traces = {key: each[1] for key, each in slow_and_usual(parts).items()}
    store = MemoryStore()
    hardware = detect_hardware().fingerprint
    choice = NetworkChoice(tuple(sorted(traces.items())), 2.0, 1.0, ((keys[0], 1),))
    save_choice(store, parts, Setting(TARGET, 2, hardware), choice)
    assert load_thread_limits(store, parts, Setting(TARGET, 2, hardware)) == {keys[0]: 1}
    assert load_thread_limits(store, parts, Setting(TARGET, 1, hardware)) == {}
    first = next(
        step
        for step in finish(parts, TARGET, 2, store).plan.steps
        if isinstance(step, KernelStep) and step.kernel == 0
    )
    assert first.most_threads == 1
    later = record(keys[0], "", 0.5, "2999-01-01T00:00:00.000000Z")
    store.append([replace(later, hardware=hardware, threads=2)])
    assert load_thread_limits(store, parts, Setting(TARGET, 2, hardware)) == {}


def test_an_output_that_is_copied_is_no_workload() -> None:
    builder = GraphBuilder("copied")
    x = builder.input("x", (1, 8, 64))
    (y,) = builder.apply("relu", (x,))
    (z,) = builder.apply("reshape", (y,), shape=(8, 64))
    parts = prepare(builder.finish((y, z)), TARGET)
    assert (
        in_network.choose_in_network(parts, slow_and_usual(parts), Setting(TARGET, 2), 1.0)
        is not None
    )


def record(key: str, trace: str, time_s: float, when: str = "") -> Record:
    return Record(key, TARGET.key, "machine", 1, trace, (time_s,), Status.OK, when=when)


def test_a_choice_holds_until_its_workload_is_measured_again() -> None:
    parts = network()
    traces = {key: each[1] for key, each in slow_and_usual(parts).items()}
    store = MemoryStore()
    store.append([record(key, "", 1.0) for key in traces])
    choice = NetworkChoice(tuple(sorted(traces.items())), 2.0, 1.0)
    save_choice(store, parts, Setting(TARGET, 1, "machine"), choice)
    parsed = {key: parse_trace(text) for key, text in traces.items()}
    assert load_choice(store, parts, Setting(TARGET, 1, "machine")) == parsed
    assert load_choice(store, parts, Setting(TARGET, 2, "machine")) == {}
    first = next(iter(traces))
    store.append([record(first, "", 0.5, "2999-01-01T00:00:00.000000Z")])
    kept = load_choice(store, parts, Setting(TARGET, 1, "machine"))
    assert kept == {key: trace for key, trace in parsed.items() if key != first}


def test_options_are_the_best_the_other_structures_and_the_rule() -> None:
    parts = network()
    workload = parts.workloads[0]
    output = workload.outputs[0].name
    axis = workload.outputs[0].axes[-2].name
    traces = [f"split({output}, {axis}, [{n}])" for n in (4, 3, 2)]
    other = f"parallel({output}, {workload.outputs[0].axes[0].name})"
    slow = f"unroll({output}, {axis})"
    store = MemoryStore()
    store.append([record(workload.key, trace, 1.0 + 0.01 * n) for n, trace in enumerate(traces)])
    store.append([record(workload.key, other, 1.2), record(workload.key, slow, 2.0)])
    store.append([record(workload.key, "no such step", 0.5)])
    found = in_network.schedules_worth_trying(store, workload, Setting(TARGET, 1, "machine"), "")
    assert found == (traces[0], other, "", traces[1])
    assert in_network.schedules_worth_trying(
        MemoryStore(), workload, Setting(TARGET, 1, "machine"), ""
    ) == ("",)


def test_what_stands_is_compared_as_a_whole_after_the_best_alone() -> None:
    options = {"a": ("a1", "a2", "a3"), "b": ("b1",)}
    untuned, before = {"a": "a3", "b": "b0"}, {"a": "a1", "b": "b1"}
    first = {"a": "a1", "b": "b1"}
    others = [{"a": "a2", "b": "b1"}, {"a": "a3", "b": "b1"}]
    assert in_network.variants_of(options, ()) == [first, *others]
    assert in_network.variants_of(options, (untuned, before)) == [first, untuned, *others]
    assert in_network.variants_of({}, ()) == [{}]


def test_what_stands_stays_until_another_is_clearly_faster() -> None:
    stands = [False, False, True, True]
    assert in_network.choose_whole([1.0, 0.5, 2.0, 2.1], stands) == 1
    assert in_network.choose_whole([1.0, 0.999, 1.0, 1.1], stands) == 2
    assert in_network.choose_whole([1.0, 0.9, 0.8, 0.85], stands) == 2
    assert in_network.choose_whole([1.0, 0.9, 0.95], [False] * 3) == 1


def test_untuned_schedules_stand_where_the_records_are_beaten_in_the_network() -> None:
    parts, store = network(), MemoryStore()
    setting = setting_of(TARGET, 1)
    untuned = {
        each.workload.key: each.trace
        for each in Chooser(Setting(TARGET, 1), store, is_cold=True).of_network(parts)
    }
    traces = {
        each.key: "" if each.name.startswith("conv") else format_trace(untuned[each.key])
        for each in parts.workloads
    }  # a convolution without a schedule is slow; it was lucky alone, no such time is possible
    store.append(
        [replace(record(*each, 1e-9), hardware=setting.hardware) for each in traces.items()]
    )
    taken = Chooser(Setting(TARGET, 1), store, is_cold=True).of_network(parts)
    assert {each.source for each in taken} == {Source.RECORD}
    result = choose_together(sized_program(parts), setting, store, 2.0)[0]
    assert result.whole is not None
    assert result.whole.is_same
    assert result.whole.speed_up == 1
    assert all(compared.is_same for _, compared in result.workloads)
    chosen = Chooser(Setting(TARGET, 1), store, is_cold=True).of_network(parts)
    assert {each.workload.key: each.trace for each in chosen} == untuned
    assert {each.source for each in chosen} == {Source.NETWORK}


def test_what_was_chosen_before_takes_part_again() -> None:
    parts, store = network(), MemoryStore()
    setting = setting_of(TARGET, 1)
    usual = {key: parse_trace(each[1]) for key, each in slow_and_usual(parts).items()}
    traces = {key: format_trace(trace) for key, trace in usual.items()}
    choice = NetworkChoice(tuple(sorted(traces.items())), 2.0, 1.0)
    save_choice(store, parts, setting, choice)
    later = [record(key, "", 1e-9, "2999-01-01T00:00:00.000000Z") for key in traces]
    store.append([replace(each, hardware=setting.hardware) for each in later])
    assert load_choice(store, parts, setting) == {}
    assert load_last_choice(store, parts, setting) == usual
    assert load_last_choice(store, parts, Setting(TARGET, 2, setting.hardware)) == {}
    found = choose_together(sized_program(parts), setting, store, 2.0)[0]
    assert found.traces
    assert "" not in dict(found.traces).values()


def test_a_search_of_few_trials_ends_in_a_comparison_inside_each_network() -> None:
    parts, store = network(), MemoryStore()
    setting = setting_of(TARGET, 1)
    others = [record(each.key, "", 1.0) for each in parts.workloads]  # trials may be dropped
    store.append([replace(each, hardware=setting.hardware) for each in others])
    how = session.Options(trials=4, seed=0)
    program = sized_program(parts)
    result = search_networks([program], setting, store, how, as_in_network(program))
    assert result.trials == 4
    (network_result,) = result.networks
    assert network_result.name == "small"
    assert network_result.whole is not None, network_result.reason
    assert all(task.compared is not None for task in result.tasks)
    assert len(load_choice(store, parts, setting)) == len(parts.workloads)


def test_what_was_never_measured_is_not_compared() -> None:
    parts = network()
    result = choose_together(sized_program(parts), setting_of(TARGET, 1), MemoryStore(), 2.0)[0]
    assert result.whole is None
    assert result.reason.startswith("no schedule but the untuned ones")


def test_a_tuned_network_that_turns_out_to_be_slower_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts = network()
    options = slow_and_usual(parts)
    untuned = {key: traces[0] for key, traces in options.items()}
    slower = session.NetworkResult("small", session.Comparison(1.0, 2.0, 0.4, 0.6))
    monkeypatch.setattr(session.in_network, "compare_with_untuned", lambda *_: slower)
    found = in_network.choose_in_network(
        parts, options, Setting(TARGET, 1), 1.0, standing=(untuned,)
    )
    assert found is not None
    assert dict(found.choice.traces) == untuned
    assert found.choice.now_s == 1.0
    assert found.choice.thread_limits == ()
    assert found.result.whole == session.Comparison(1.0, 1.0, 1.0, 1.0, is_same=True)


def test_too_little_time_claims_nothing() -> None:
    parts = network()
    program = finish(parts, TARGET, 1, MemoryStore())
    traces = {workload.key: "" for workload in parts.workloads}
    result = compare_with_untuned(parts, program, program, (traces, traces), 0.0)
    assert result == session.NetworkResult("small", reason=TOO_SHORT)
    stopped = compare_with_untuned(
        parts, program, program, (traces, traces), 1.0, should_stop=lambda: True
    )
    assert stopped == session.NetworkResult("small", reason="stopped")


def test_a_network_and_itself_are_as_fast_as_each_other() -> None:
    parts = network()
    program = finish(parts, TARGET, 1, MemoryStore())
    whole = session.compare_programs(parts, program, program, 1.0).whole
    assert whole is not None
    assert whole.least <= whole.speed_up <= whole.most
    assert 0.2 < whole.speed_up < 5
