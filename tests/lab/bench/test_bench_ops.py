"""`tensorwright bench ops` on its smallest cases, with a few trials."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest
from tests.command_line import Invoke
from tests.lab.zoo.operator_cases import small_case
from tests.targets import native_target
from tests.unit.peers.tampered import wrong_answers

from tensorwright.base import detect_target
from tensorwright.machine import detect_hardware
from tensorwright.peers.process import PeerProcess
from tensorwright.records import MemoryStore, Record, Status
from tensorwright_lab.bench.ops import TuneBudget, plan_rival, reach_time
from tensorwright_lab.comparison import OpPlan, operators
from tensorwright_lab.zoo import OperatorCase, operator_program


@pytest.fixture(autouse=True)
def small_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cases GMM.1 and NRM.1, cut down."""

    def find(names: tuple[str, ...], batch: int) -> tuple[OperatorCase, ...]:
        return tuple(small_case(name, batch) for name in names)

    module = importlib.import_module("tensorwright_lab.bench.ops")  # the name is the command's, too
    monkeypatch.setattr(module, "find_cases", find)
    monkeypatch.setattr(module, "choose_copies", lambda *_: 2)


def test_two_cases_are_tuned_compared_and_kept(invoke: Invoke, tmp_path: Path) -> None:
    path, records = tmp_path / "ops.json", tmp_path / "records.sqlite"
    arguments = ("bench", "ops", "--trials", 4, "--peers", "onnxruntime", "--rounds", 1)
    arguments = (*arguments, "--threads", 1, "--json", path, "--records", records)
    result = invoke(*arguments, "--cases", "GMM.1")
    assert result.exit_code == 0, result.output
    content = json.loads(path.read_text())
    (row,) = content["rows"]
    assert (row["case"], row["failure"], row["is_tuned"]) == ("GMM.1", "", True)
    assert 1 <= row["trials"] <= 4
    assert row["ratio"] > 0
    assert content["peak_gflops"] > 0
    assert content["versions"]["onnxruntime"]

    result = invoke(*arguments, "--cases", "GMM.1,NRM.1", "--resume")
    assert result.exit_code == 0, result.output
    first, second = json.loads(path.read_text())["rows"]
    assert first["times"] == row["times"]
    assert second["case"] == "NRM.1"
    assert "GMM.1 batch 1" not in result.stderr
    assert "NRM.1 batch 1" in result.stderr
    assert "geometric mean" in result.stdout


def test_what_answers_wrongly_has_no_part_in_a_figure(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = wrong_answers("ours", "onnxruntime channels_first", "onnxruntime matmul")
    monkeypatch.setattr(operators, "PeerProcess", wrong)
    path = tmp_path / "ops.json"
    words = ("--no-tune", "--peers", "onnxruntime", "--rounds", 1, "--threads", 1, "--json", path)
    result = invoke("bench", "ops", *words, "--cases", "GMM.1")
    assert result.exit_code == 1
    content = json.loads(path.read_text())
    (row,) = content["rows"]
    assert [time["failure"].split(":")[0] for time in row["times"]] == ["wrong answer"] * 2
    assert [time["time_s"] for time in row["times"]] == [None, None]
    assert (row["ours_us"], row["best_us"], row["ratio"]) == (None, None, None)
    assert {mean["count"] for mean in content["means"]} == {0}
    assert "GMM.1: ours: wrong answer: off by" in result.stdout

    monkeypatch.setattr(operators, "PeerProcess", PeerProcess)
    again = invoke("bench", "ops", *words, "--cases", "GMM.1", "--resume")
    assert again.exit_code == 0, again.output
    assert json.loads(path.read_text())["rows"][0]["ratio"] > 0


def test_trials_on_record_count(invoke: Invoke, tmp_path: Path) -> None:
    path, records = tmp_path / "ops.json", tmp_path / "records.sqlite"
    arguments = ("bench", "ops", "--trials", 3, "--peers", "onnxruntime", "--rounds", 1)
    arguments = (*arguments, "--threads", 1, "--json", path, "--records", records)
    for _ in range(2):
        result = invoke(*arguments, "--cases", "GMM.1")
        assert result.exit_code == 0, result.output
    (row,) = json.loads(path.read_text())["rows"]
    assert row["tune_s"] == 0.0
    assert row["trials"] >= 3


def test_without_tuning_nothing_is_recorded(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "ops.json"
    arguments = ("bench", "ops", "--no-tune", "--peers", "onnxruntime", "--rounds", 1)
    result = invoke(*arguments, "--threads", 1, "--json", path, "--cases", "NRM.1")
    assert result.exit_code == 0, result.output
    (row,) = json.loads(path.read_text())["rows"]
    assert (row["trials"], row["is_tuned"]) == (0, False)


def test_resuming_needs_a_file(invoke: Invoke) -> None:
    result = invoke("bench", "ops", "--resume", "--cases", "NRM.1")
    assert result.exit_code == 2
    assert "name it with --json" in result.output


def test_an_unknown_peer_is_refused(invoke: Invoke) -> None:
    result = invoke("bench", "ops", "--cases", "NRM.1", "--peers", "nobody")
    assert result.exit_code == 2
    assert "no such kind of competitor" in result.output


def test_how_long_our_search_took_to_be_as_fast(tmp_path: Path) -> None:
    program = operator_program(small_case("GMM.1"))
    plan = OpPlan(native_target(), 1, ())
    hardware = detect_hardware().fingerprint
    with MemoryStore() as store:
        for second, time_s in ((0, 1e-4), (2, 3e-3), (5, 2e-3), (9, 1e-3)):
            record = Record(
                program.workload.key,
                plan.target.key,
                hardware,
                1,
                f"trace {second}",
                (time_s,),
                Status.OK,
                when=f"2026-01-31T12:00:0{second}.500000Z",
            )
            store.append([record])
        started = "2026-01-31T12:00:01.000000Z"
        assert reach_time(program, plan, store, started, 2e-3) == 4.5
        assert reach_time(program, plan, store, started, 5e-4) is None


def test_metaschedule_has_a_folder_of_its_own_for_each_case(home: Path) -> None:
    plan, budget = OpPlan(detect_target(), 2, ()), TuneBudget(0, 0, ("C2D", "GMM.2"), 64)
    case = small_case("C2D.3")
    rival = plan_rival(case, plan, budget)
    assert rival is not None
    assert rival.trials == 64
    assert rival.folder == home / "metaschedule" / "C2D.3-batch1-threads2-seed0"
    assert plan_rival(small_case("GMM.1"), plan, budget) is None
    assert plan_rival(small_case("GMM.2"), plan, budget) is not None
