"""The page of a search that runs: served on this machine only, with the state of now."""

from __future__ import annotations

import http.client
import json
import math
from collections.abc import Iterator

import pytest
from tests.unit.report.documents import document
from tests.unit.tuning.helpers import measured_task

from tensorwright.base import MachineError
from tensorwright.report import LiveReport
from tensorwright.tuning.session import Phase, Progress


@pytest.fixture
def live() -> Iterator[LiveReport]:
    report = LiveReport("net", "tensorwright optimize net")
    yield report
    report.stop()


def progress(trials: int, best_s: float) -> Progress:
    row = measured_task("conv", 2.0, trials, 1e-3, best_s)
    return Progress(Phase.SEARCH, 1, trials, 3.0, trials, 3.0, 64, None, (row,))


def get(live: LiveReport, path: str, host: str | None = None) -> tuple[int, str]:
    port = int(live.address.rpartition(":")[2].rstrip("/"))
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("GET", path, headers={"Host": host or f"127.0.0.1:{port}"})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_each_round_adds_to_the_curve_of_a_workload(live: LiveReport) -> None:
    live.on_progress(progress(0, math.inf))
    live.on_progress(progress(16, 8e-4))
    live.on_progress(progress(32, 5e-4))
    data = json.loads(get(live, "/data.json")[1])
    (report,) = data["reports"]
    (workload,) = report["workloads"]
    assert data["is_live"]
    assert [(each["number"], each["best_us"]) for each in workload["trials"]] == [
        (16, 800.0),
        (32, 500.0),
    ]
    assert report["live"]["phase"] == "search"


def test_the_page_is_served_and_later_the_whole_report(live: LiveReport) -> None:
    assert '"is_live":true' in get(live, "/")[1]
    live.finish([document()])
    assert json.loads(get(live, "/data.json")[1])["reports"] == [document()]
    assert '"is_live":false' in get(live, "/")[1]


def test_other_hosts_and_paths_are_refused(live: LiveReport) -> None:
    assert get(live, "/", "evil.example:80")[0] == 403
    assert get(live, "/../../etc/passwd")[0] == 404


def test_a_port_in_use_is_an_error_of_the_machine(live: LiveReport) -> None:
    port = int(live.address.rpartition(":")[2].rstrip("/"))
    with pytest.raises(MachineError, match=f"port {port}"):
        LiveReport("other", "", port)
