"""A competitor's process: answers, refusals, crashes, hangs, and standing still between turns."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tensorwright
from tensorwright.base import MachineError, UsageError
from tensorwright.peers import process
from tensorwright.processes import Outcome

FUNCTIONS = Path(__file__).with_name("competitors.py")
INPUTS = {"x/0": np.arange(6, dtype=np.float32).reshape(2, 3), "file": np.array(True)}


def start(function: str, limit_s: float = 60.0, **options: object) -> process.PeerProcess:
    """A process with the function loaded, not yet bound."""
    peer = process.PeerProcess(function, "function", limit_s)
    peer.load(f"{FUNCTIONS}:{function}", 2, options)
    return peer


@pytest.fixture(scope="module")
def adder() -> Iterator[process.PeerProcess]:
    with start("add", amount=1.5) as peer:
        yield peer


def read_state(pid: int) -> str:
    """The state letter of a process: T for stopped, "" for gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""


def wait_for_state(pid: int, states: str) -> bool:
    deadline = time.monotonic() + 20
    while read_state(pid) not in tuple(states) + (("",) if "Z" in states else ()):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_arrays_go_there_and_back_whatever_their_names(adder: process.PeerProcess) -> None:
    outputs = adder.check({**INPUTS, "empty": np.zeros((0, 3), np.float64)})
    assert list(outputs) == ["x/0", "file", "empty"]
    np.testing.assert_array_equal(outputs["x/0"], INPUTS["x/0"] + np.float32(1.5))
    assert outputs["x/0"].dtype == np.float32
    assert outputs["file"] == 2.5
    assert outputs["empty"].shape == (0, 3)


def test_outputs_without_names_are_numbered() -> None:
    with start("pair") as peer:
        outputs = peer.check({})
    assert {name: (a.shape, a.dtype.name) for name, a in outputs.items()} == {
        "0": ((), "float32"),
        "1": ((2, 0), "int64"),
    }


def test_samples_are_seconds_per_call() -> None:
    with start("sleep", seconds=0.002) as peer:
        peer.bind({})
        samples = peer.time(number=3, repeat=4)
    assert len(samples) == 4
    assert min(samples) >= 0.002


def test_objects_are_not_sent(adder: process.PeerProcess) -> None:
    with pytest.raises(ValueError, match="holds Python objects"):
        adder.bind({"x": np.array([{}])})


def test_a_refusal_is_a_result_and_the_process_goes_on() -> None:
    with start("refuse") as peer:
        with pytest.raises(process.PeerFailed) as caught:
            peer.bind({})
        assert caught.value.kind == process.FailureKind.REFUSED
        assert caught.value.reason == "ValueError: this one refuses"
        assert caught.value.where == "peer refuse"
        peer.load(f"{FUNCTIONS}:add", 1)
        peer.bind({})
        with pytest.raises(process.PeerFailed, match="no_such"):
            peer.load(f"{FUNCTIONS}:no_such", 1)


def test_a_crash_is_a_result_with_its_last_words() -> None:
    with start("crash") as peer:
        peer.bind({})
        with pytest.raises(process.PeerFailed) as caught:
            peer.time(1, 1)
        assert caught.value.kind == process.FailureKind.CRASHED
        assert caught.value.reason.splitlines()[0] == "the process ended with SIGKILL (Killed)"
        assert caught.value.reason.splitlines()[-1] == "last words"
        with pytest.raises(process.PeerFailed, match="the process ended"):
            peer.time(1, 1)


def test_a_hang_is_a_result_and_the_process_is_ended() -> None:
    with start("sleep", seconds=1000) as peer:
        peer.bind({})
        peer._limit_s = 0.05
        with pytest.raises(process.PeerFailed) as caught:
            peer.time(1, 1)
    assert caught.value.kind == process.FailureKind.HUNG
    assert caught.value.reason == "no answer to 'time' within 0.05 s"


def test_rotation_of_processes_reports_the_crash_and_times_the_rest() -> None:
    with start("crash") as bad, start("sleep", seconds=0.001) as good:
        bad.bind({})
        good.bind({})
        failure, timing = process.rotate([bad, good], rounds=1, min_time_s=1e-3)
    assert not isinstance(failure, process.Timing)
    assert failure.kind is process.FailureKind.CRASHED
    assert isinstance(timing, process.Timing)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")
def test_it_stands_still_outside_its_turn_only() -> None:
    with start("process") as peer:
        pid = int(peer.check({})["0"])
        assert wait_for_state(pid, "T")
        with peer.turn(), peer.turn():
            assert wait_for_state(pid, "RSD")
        assert wait_for_state(pid, "T")
    assert wait_for_state(pid, "Z")
    peer.close()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")
def test_a_stopped_process_does_not_outlive_a_killed_benchmark(tmp_path: Path) -> None:
    code = f"""
import time
from tensorwright.peers.process import PeerProcess
peer = PeerProcess("p", "function")
peer.load({str(FUNCTIONS) + ":process"!r}, 1)
print(int(peer.check({{}})["0"]), flush=True)
time.sleep(1000)
"""
    source = str(Path(tensorwright.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": source, "TMPDIR": str(tmp_path)}
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
    )
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert wait_for_state(pid, "T")
        parent.send_signal(signal.SIGKILL)
    assert wait_for_state(pid, "Z")


def test_an_interrupt_ends_the_process_and_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> Outcome:
        raise KeyboardInterrupt

    with start("add") as peer:
        monkeypatch.setattr(peer._child, "receive", interrupt)
        with pytest.raises(KeyboardInterrupt):
            peer.bind({})
        monkeypatch.undo()
        with pytest.raises(process.PeerFailed, match="the process ended with SIGKILL"):
            peer.bind({})


def test_unknown_and_missing_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="one of ours, onnxruntime, openvino, pytorch, inductor"):
        process.PeerProcess("x", "nobody")
    missing = process.Kind("other", "tensorwright.peers.other", "a_package_nobody_has", "bench")
    monkeypatch.setattr(process.protocol, "KINDS", (missing,))
    with pytest.raises(MachineError) as caught:
        process.PeerProcess("x", "other")
    assert caught.value.reason == "the package a_package_nobody_has is not installed"
    assert caught.value.remedy == "pip install 'tensorwright[bench]'"
    missing = process.Kind("other", "tensorwright.peers.other", program="a-program-nobody-has")
    monkeypatch.setattr(process.protocol, "KINDS", (missing,))
    with pytest.raises(MachineError, match="no program a-program-nobody-has"):
        process.PeerProcess("x", "other")
