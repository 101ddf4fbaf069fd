"""Sessions in processes of their own: kill -9 and Ctrl-C in mid-round, then again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tensorwright.records import RecordStore, Status

ROOT = Path(__file__).parents[4]
PROGRAM = """
import sys, time
from tests.targets import native_target
from tensorwright.records import Setting, open_store
from tensorwright.tuning.session import Options, PlainLines, SessionParts, tune
from tensorwright.tuning.task import Task
from tests.unit.tuning.helpers import FakeBuilder, FakeRunner, doubled, numbered_space

path, pause_s = sys.argv[1], float(sys.argv[2])

def before(count):
    print("measuring", flush=True)
    time.sleep(pause_s)

with open_store(path) as store:
    result = tune(
        [Task(doubled("one")), Task(doubled("two"))],
        Setting(native_target(), 1, "here"),
        store,
        Options(
            trials=40, seed=0, callbacks=(PlainLines(sys.stdout),), round_size=8, should_rank=False
        ),
        parts=SessionParts(
            FakeBuilder(), FakeRunner(before=before),
            make_space=numbered_space,
        ),
    )
print(result.reason.name, result.trials)
print(result.resume_text)
"""


def start(store: Path, pause_s: float) -> subprocess.Popen[str]:
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(store), str(pause_s)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": paths},
    )


def read_until(process: subprocess.Popen[str], word: str) -> None:
    """Wait for the line of a round, then into the middle of the next one."""
    assert process.stdout is not None
    assert any(word in line for line in process.stdout)
    assert all(any("measuring" in line for line in process.stdout) for _ in range(3))


def finish(store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """The same session once more, in this process."""
    monkeypatch.setattr(sys, "argv", ["-c", str(store), "0"])
    exec(PROGRAM, {})
    return capsys.readouterr().out


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_session_ended_in_mid_round_loses_no_record_and_resumes(
    tmp_path: Path,
    number: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "records.sqlite"
    with start(path, 0.03) as process:
        read_until(process, "round 2 ")
        process.send_signal(number)
        assert process.stdout is not None
        text = process.stdout.read()
    with RecordStore(path) as store:
        kept = tuple(store.query())
    if number is signal.SIGINT:
        assert process.returncode == 0
        assert f"INTERRUPTED {len(kept)}\nstopped after {len(kept)} trials" in text
        assert 10 < len(kept) < 18  # what the round in flight had measured is kept, too
    else:
        assert process.returncode == -signal.SIGKILL
        assert len(kept) == 10  # the defaults and one round
    assert "BUDGET_SPENT 40" in finish(path, monkeypatch, capsys)
    with RecordStore(path) as store:
        records = tuple(store.query())
    assert records[: len(kept)] == kept
    assert len({(one.workload, one.trace) for one in records}) == len(records) == 40
    assert all(one.status is Status.OK for one in records)
