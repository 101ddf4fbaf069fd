"""A forecast says what an enumeration will find to do, exactly or by a part of it."""

from __future__ import annotations

import pytest
from tests.lab.rule_generation.tiny import TINY, enumerated

from tensorwright_lab.rule_generation import forecast as forecast_module
from tensorwright_lab.rule_generation.answers import CALLER
from tensorwright_lab.rule_generation.enumerate.checkpoint import WorkFolder
from tensorwright_lab.rule_generation.enumerate.enumerate import run_of
from tensorwright_lab.rule_generation.forecast import LevelCost, forecast


def forecast_of(path, operators):
    folder = WorkFolder(path, run_of(TINY, operators, 0))
    return forecast(TINY, operators, folder, 0, CALLER, lambda line: None)


def test_a_forecast_of_whole_levels_is_exact(tmp_path):
    found = enumerated(tmp_path / "work", 3)
    costs = forecast_of(tmp_path / "plan", 3)
    assert [cost.applications for cost in costs[:2]] == list(found.applications[:2])
    assert costs[2].applications == pytest.approx(found.applications[2], rel=0.05)
    assert costs[2].graphs == found.graphs
    assert all(cost.shard_s > 0 and cost.sent_bytes > 0 for cost in costs[1:])
    assert costs[0].expected_s == 0
    assert all(cost.expected_s > 0 and cost.took_s > 0 for cost in costs[1:])


def test_a_forecast_by_a_part_is_near(tmp_path, monkeypatch):
    found = enumerated(tmp_path / "work", 3)
    monkeypatch.setattr(forecast_module, "_MOST", 90)
    monkeypatch.setattr(forecast_module, "_MOST_PAIRS", 200)
    costs = forecast_of(tmp_path / "plan", 3)
    assert costs[1].share == pytest.approx(3, rel=0.1)
    assert costs[2].applications == pytest.approx(found.applications[2], rel=0.25)


def test_the_client_may_be_what_takes_longest():
    cost = LevelCost(5, 1e6, 1e6, 100, 2.0, 4e9, 6e9, 0.0, 1, 1)
    assert cost.work_s == 200.0
    assert cost.elapsed_s(2, 1e9) == 100.0
    assert cost.elapsed_s(100, 1e9) == 10.0
