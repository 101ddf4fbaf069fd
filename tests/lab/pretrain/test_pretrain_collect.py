"""`tensorwright pretrain collect`: what is measured, and where it goes on."""

from __future__ import annotations

import importlib
from collections import Counter
from pathlib import Path

from tests.command_line import Invoke
from tests.targets import AVX512

from tensorwright.schedule import state_of
from tensorwright.tuning.space import algorithm_sketches
from tensorwright_lab.zoo.plausible import draw_network

MODULE = importlib.import_module("tensorwright_lab.pretrain.collect")  # the name is the command's


def family_of(seed: int) -> str:
    return draw_network(seed).name.removesuffix(f"_{seed}")


def test_networks_of_other_families_are_left_out() -> None:
    counts: Counter[str] = Counter()
    own = family_of(7)
    everything = [each.key for each in MODULE._workloads(7, AVX512, (), counts)]
    assert everything
    assert [each.key for each in MODULE._workloads(7, AVX512, (own,), counts)] == everything
    others = {family_of(seed) for seed in range(20)} - {own}
    assert MODULE._workloads(7, AVX512, tuple(others), counts) == ()
    assert not counts


def test_only_workloads_that_another_algorithm_computes() -> None:
    seeds = [seed for seed in range(200) if family_of(seed) == "dense_connections"]
    found = [MODULE._workloads(seed, AVX512, (), Counter()) for seed in seeds]
    kept = [MODULE._with_algorithms(workloads, AVX512) for workloads in found]
    assert any(kept)
    assert sum(map(len, kept)) < sum(map(len, found))
    for workload in (each for workloads in kept for each in workloads):
        assert any(algorithm_sketches(state_of(workload), AVX512))


def test_no_time_measures_nothing_and_says_where_to_go_on(invoke: Invoke, tmp_path: Path) -> None:
    folder = tmp_path / "measured"
    result = invoke("pretrain", "collect", str(folder), "--minutes", "0", "--seed", "12")
    assert result.exit_code == 0
    assert "the next network is" in result.output
    assert f"tensorwright pretrain collect {folder}" in result.output
    assert not list(folder.glob("*.sqlite"))


def test_an_unknown_family_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("pretrain", "collect", str(tmp_path), "--family", "nonsense")
    assert result.exit_code == 2
    assert "dense_connections" in result.output
