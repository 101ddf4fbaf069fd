"""`report`, `optimize --report` and `tune --report`: from a search to a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.command_line import Invoke
from tests.unit.report.documents import document

from tensorwright.profiling import profile
from tensorwright.report import measured, read_report, rivals

FEW = ("--trials", 6, "--threads", 1, "--quiet")


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other runtime is started, and few runs are timed."""
    monkeypatch.setattr(rivals, "NAMES", {})
    monkeypatch.setattr(measured, "alone_values", lambda *_: {"name": "", "times_us": {}})
    monkeypatch.setattr(measured, "profile", lambda each: profile(each, repeats=3))


def test_a_search_leaves_a_report_and_records_give_it_again(
    invoke: Invoke, model: Path, tmp_path: Path
) -> None:
    page, again = tmp_path / "r.html", tmp_path / "again.json"
    files = ("-o", tmp_path / "m.tw", "--report", page)
    done = invoke("optimize", model, *files, "--no-rewrite", *FEW)
    assert done.exit_code == 0, done.output
    report = read_report(page)
    assert report["name"] == "tiny"
    assert "tensorwright optimize" in report["command"]
    assert [part["part"] for part in report["parts"]["parts"]] == [
        "operators",
        "fusion",
        "layouts",
        "schedules",
    ]
    assert [row["operator"] for row in report["graphs"]["before"]] == ["matmul", "relu", "softmax"]
    assert report["answer"]["time_us"] == report["rivals"]["ours"]["time_us"]
    searches = report["workloads"]
    assert sum(each["trial_count"] for each in searches) >= 3
    assert all("kernel(" in each["nests"]["best"] for each in searches)
    trials = [trial for each in searches for trial in each["trials"]]
    assert any("predicted_us" in trial for trial in trials)

    done = invoke("report", "-o", again, "--threads", 1)
    assert done.exit_code == 0, done.output
    recorded = read_report(again)
    assert (recorded["profile"], recorded["parts"]) == (report["profile"], report["parts"])
    assert [each["trials"] for each in recorded["workloads"]] == [
        each["trials"] for each in searches
    ]
    done = invoke("report", page, again, "-o", tmp_path / "both.html")
    assert done.exit_code == 0, done.output
    assert read_report(tmp_path / "both.html") == recorded


def test_an_expression_has_a_report(invoke: Invoke, own: Path, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    done = invoke("tune", f"{own}:y", "--report", page, *FEW)
    assert done.exit_code == 0, done.output
    assert len(read_report(page)["profile"]["steps"]) == 1


def test_the_data_of_a_profile_are_printed(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(document()["profile"]))
    done = invoke("report", path, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["profile"] == document()["profile"]


def test_what_cannot_be_shown_is_refused(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    none = invoke("report")
    assert none.exit_code == 2
    assert "no search for native on record" in none.output
    two = invoke("report", model, model)
    assert two.exit_code == 2
    assert "only two files can be compared" in two.output
    onto = invoke("optimize", model, "-o", tmp_path / "m.tw", "--report", model, *FEW)
    assert onto.exit_code == 8
    assert "would be lost" in onto.output
