"""Commands of the laboratory whose workers are on the machine of the client, with its home."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.command_line import Invoke
from tests.farms import farm_here


@pytest.fixture
def address(home: Path) -> Iterator[str]:
    """A scheduler and two workers; both build, and the first to come measures, too."""
    with farm_here(home, ("--slots", "1"), ("--slots", "1")) as address:
        yield address


def test_who_measures_on_workers_here_does_not_keep_them_from_it(
    invoke: Invoke, address: str, tmp_path: Path
) -> None:
    rows, path = tmp_path / "rows.jsonl", tmp_path / "random.json"
    plan = ("--count", 1, "--candidates", 2, "--threads", 1, "--rows", rows, "--json", path)
    result = invoke("bench", "random", *plan, "--workers", address)
    assert result.exit_code == 0, result.output
    figures = json.loads(path.read_text())
    assert (figures["workloads"], figures["measured"], figures["failed"]) == (1, 2, 0)

    folder = tmp_path / "collected"
    plan = (folder, "--minutes", 0.01, "--programs", 2)
    result = invoke("pretrain", "collect", *plan, "--workers", address)
    assert result.exit_code == 0, result.output
    assert json.loads((folder / "progress.json").read_text())["next_seed"] > 0
    assert any(file.stat().st_size for file in folder.glob("*.sqlite"))
