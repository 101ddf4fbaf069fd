"""The file of a report: one page without foreign code, from which the data can be read again."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.unit.report.documents import EVIL, document

from tensorwright.base import UsageError
from tensorwright.report import read_report, render, write_report
from tensorwright.report.page import SCRIPTS


class Tags(HTMLParser):
    """Counts elements, and keeps the attributes of each."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_nothing_of_a_model_becomes_markup() -> None:
    page = render([document()])
    parser = Tags()
    parser.feed(page)
    kinds = [tag for tag, _ in parser.tags]
    assert kinds.count("script") == 2
    assert "img" not in kinds
    assert EVIL not in page
    assert not [name for _, attributes in parser.tags for name in attributes if name[:2] == "on"]


def test_the_page_fetches_nothing_and_runs_its_own_script_alone() -> None:
    page = render([document()])
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)
    assert not re.search(r"@import|url\(", page)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/]{43}='", policy[1])
    assert len(page) < 200_000


def test_every_script_of_the_folder_is_part_of_the_page() -> None:
    folder = Path(__file__).parents[3] / "src/tensorwright/report/page"
    assert {path.stem for path in folder.glob("*.js")} == set(SCRIPTS)


@pytest.mark.parametrize("name", ["r.html", "r.json"])
def test_a_report_reads_back(tmp_path: Path, name: str) -> None:
    write_report(tmp_path / name, [document()])
    assert read_report(tmp_path / name) == document()


def test_of_two_reports_the_newer_reads_back(tmp_path: Path) -> None:
    newer = document() | {"name": "newer"}
    write_report(tmp_path / "two.html", [document(), newer])
    assert read_report(tmp_path / "two.html") == newer


def test_a_profile_is_a_report(tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(document()["profile"]))
    answer = read_report(path)["answer"]
    assert (answer["time_us"], answer["left_us"]) == (1000.0, 500.0)


def test_nothing_is_said_to_be_left_where_the_peak_was_measured_too_low(tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(document()["profile"] | {"roofline_share": 1.2}))
    answer = read_report(path)["answer"]
    assert answer == {"time_us": 1000.0, "roofline_us": 1200.0, "runs": 40}


@pytest.mark.parametrize(
    "text", ["", "[]", '{"format": "tensorwright report 99"}', "<html>no report</html>"]
)
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.html"
    path.write_text(text)
    with pytest.raises(UsageError, match="not a report of this version"):
        read_report(path)


@pytest.mark.parametrize("profile", [{}, {"network": "n"}, {"network": "n", "roofline_share": "x"}])
def test_a_damaged_profile_is_refused(tmp_path: Path, profile: dict[str, Any]) -> None:
    path = tmp_path / "profile.json"
    path.write_text(json.dumps({"network_us": "1.0", "steps": [], **profile}))
    with pytest.raises(UsageError, match="not a report of this version"):
        read_report(path)
