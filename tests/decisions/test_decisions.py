"""What is grouped, chosen and predicted for fixed workloads is what the repository says.

`make golden` writes the pages again and prints what changed, with the predicted times before and
after: judge that table, and keep the diff of the pages with the change that made it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import CHANGES, GOLDEN
from tests.decisions.cases import pages
from tests.decisions.changes import compare, describe
from tests.decisions.decide import ASSUMED, decide

from tensorwright.processes import Child, Done, Job


@pytest.fixture(scope="module")
def process() -> Iterator[Child]:
    """Where decisions are made."""
    child = Child(variables=ASSUMED)
    yield child
    child.close()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home without measured rates or choices."""
    return tmp_path_factory.mktemp("decisions")


@pytest.mark.golden
@pytest.mark.parametrize("page", [page.name for page in pages()])
def test_decisions_are_those_on_record(
    page: str, process: Child, home: Path, request: pytest.FixtureRequest
) -> None:
    path = GOLDEN / "decisions" / f"{page}.txt"
    before = path.read_text() if path.exists() else ""
    outcome = process.do(Job(decide, (page, home)), 300.0)
    assert isinstance(outcome, Done), outcome
    changes = compare(page, before, outcome.value)
    if request.config.getoption("--golden-update"):
        if changes:
            path.parent.mkdir(exist_ok=True)
            path.write_text(outcome.value)
        request.config.stash[CHANGES].extend(changes)
    elif changes:
        pytest.fail(f"decisions changed: run `make golden`, judge them\n{describe(changes)}", False)


def test_a_changed_decision_is_told_with_its_times() -> None:
    page = "== net, t\npartition\n-- conv 01 runs 2 times: 10 us by model\nsplit\n"
    assert compare("p", page, page.replace("10 us", "10.001 us")) == []
    (change,) = compare("p", page, page.replace("10 us", "15 us").replace("split", "fuse"))
    assert (change.what, change.before_us, change.after_us) == ("schedule, time", 20, 30)
    assert describe([change]).splitlines()[1] == (
        "        20         30  1.500  schedule, time, p: net, t: conv 01"
    )
    (change,) = compare("p", page, page.replace("partition", "cut"))
    assert change.what == "grouping"
    assert compare("p", "", page)[0].what == "new"
    (change,) = compare("p", page, page.replace("model", "heuristic"))
    assert change.what == "source"
