"""What is kept of this machine, what others use of it, and what is said of both."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest

from tensorwright import machine
from tensorwright.base import detect_target, override
from tensorwright.cli.arguments.machine import check_machine

pytestmark = pytest.mark.usefixtures("unassumed")
TARGET = detect_target()
OLD = "2026-01-31T12:00:00.000000Z"
NEW = "2026-02-01T12:00:00.000000Z"
KEPT = machine.Ceilings(
    2, 2e11, (machine.Level("L2", 1e6, 9e10), machine.Level("memory", math.inf, 1e10)), OLD
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TENSORWRIGHT_HOME", str(tmp_path))
    return tmp_path


def test_what_is_kept_is_read_back() -> None:
    assert machine.kept_ceilings(TARGET, 2) is None
    machine.keep_ceilings(TARGET, KEPT)
    one = replace(KEPT, threads=1, flops_per_s=1e11)
    machine.keep_ceilings(TARGET, one)
    assert machine.kept_ceilings(TARGET, 2) == KEPT
    assert machine.kept_ceilings(TARGET, 1) == one
    assert machine.kept_ceilings(TARGET, 4) is None
    assert KEPT.day == "2026-01-31"
    assert str(KEPT) == "200 GFLOP/s; L2 90, memory 10 GB/s"


def test_the_highest_rates_stay_and_the_others_are_forgotten() -> None:
    lower = replace(KEPT, flops_per_s=1e11, when=NEW)
    assert machine.refine_ceilings(TARGET, KEPT) == KEPT
    assert machine.refine_ceilings(TARGET, lower) == KEPT
    higher = machine.Ceilings(
        2, 1e11, (machine.Level("L2", 1e6, 8e10), machine.Level("memory", math.inf, 2e10)), NEW
    )
    best = machine.refine_ceilings(TARGET, higher)
    assert best == machine.kept_ceilings(TARGET, 2)
    assert (best.flops_per_s, best.when) == (2e11, NEW)
    assert [level.bytes_per_s for level in best.levels] == [9e10, 2e10]
    assert machine.better_of(machine.Ceilings(2, 1.0, ()), KEPT).levels == KEPT.levels


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"2": {}}', '{"2": {"flops_per_s": "x", "levels": [], "when": ""}}', '{"2": 3}'],
)
def test_a_damaged_file_says_nothing(home: Path, text: str) -> None:
    machine.keep_ceilings(TARGET, KEPT)
    (path,) = (home / "machine").iterdir()
    path.write_text(text)
    assert machine.kept_ceilings(TARGET, 2) is None
    machine.keep_ceilings(TARGET, KEPT)
    assert json.loads(path.read_text())["2"]["when"] == OLD


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with override(home=tmp_path / "file" / "below"):
        machine.keep_ceilings(TARGET, KEPT)
        assert machine.kept_ceilings(TARGET, 2) is None


def write_proc(proc: Path, ticks: str, processes: dict[int, tuple[str, int, str]]) -> None:
    """A folder like /proc: the line of all cores, and name, parent and ticks of processes."""
    proc.mkdir(exist_ok=True)
    (proc / "stat").write_text(f"cpu  {ticks} 0 0\ncpu0 0\n")
    for pid, (name, parent, used) in processes.items():
        (proc / str(pid)).mkdir(exist_ok=True)
        text = f"{pid} ({name}) R {parent} 0 0 0 0 0 0 0 0 0 {used} 20 0"
        (proc / str(pid) / "stat").write_text(text)


def test_what_others_use_is_what_this_family_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc, me = tmp_path / "proc", os.getpid()
    clock = [100.0]
    monkeypatch.setattr("tensorwright.machine.kept.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("tensorwright.machine.kept.os.cpu_count", lambda: 2)
    second = os.sysconf("SC_CLK_TCK")
    idle = {me: ("python", 1, "0 0 0 0"), 7: ("worker (of mine)", me, "0 0 0 0")}
    others = {8: ("grandchild", 7, "0 0 0 0"), 9: ("a greedy one", 1, "50 0 0 0")}
    write_proc(proc, "0 0 0 0 0 0 0 0", idle | others)
    watch = machine.LoadWatch(proc)
    clock[0] += 10.0
    used = second
    family = {
        me: ("python", 1, f"{used} {used} {used} 0"),
        7: ("worker (of mine)", me, f"{2 * used} 0 0 0"),
        8: ("grandchild", 7, f"{used} 0 0 0"),
    }
    greedy = {9: ("a greedy one", 1, f"{50 + 5 * used} 0 0 0"), 10: ("new", 1, f"{used} 0 0 0")}
    # busy 12 s in all, 6 of them of this family; 2 s stolen of 20
    ticks = f"{6 * used} {4 * used} {used} {6 * used} 0 0 {used} {2 * used}"
    write_proc(proc, ticks, family | greedy)
    load = watch.load()
    assert load.cores == pytest.approx(0.6)
    assert load.stolen == pytest.approx(0.1)
    assert load.busiest == "a greedy one 9"
    assert load.is_busy
    assert str(load) == (
        "others use 0.6 of 2 cores (most: a greedy one 9), the hypervisor takes 10% of the time"
    )


def test_a_system_that_tells_nothing_is_not_busy(tmp_path: Path) -> None:
    load = machine.LoadWatch(tmp_path / "none").load()
    assert not load.is_busy
    assert load.busiest == ""
    assert machine.LoadWatch().load().of_cores == os.cpu_count()


BUSY = machine.Load(0.9, 0.0, 2, "python 812")


def test_what_is_seen_is_said_with_what_to_do() -> None:
    slow = replace(KEPT, flops_per_s=1.2e11, when=NEW)
    assert machine.MachineState(machine.Load(0.1)).warning == ""
    assert machine.MachineState(machine.Load(0.1), KEPT, KEPT).warning == ""
    assert machine.MachineState(BUSY).warning == (
        "machine busy: others use 0.9 of 2 cores (most: python 812)\n"
        "  times are too long, ratios wrong: end what else runs, or measure later"
    )
    assert machine.MachineState(BUSY, slow, KEPT).warning == (
        "machine busy: others use 0.9 of 2 cores (most: python 812)\n"
        "  this machine reaches 60% of the 200 GFLOP/s of 2026-01-31\n"
        "  times are too long, ratios wrong: end what else runs, or measure later"
    )
    assert machine.MachineState(machine.Load(), slow, KEPT).warning == (
        "this machine reaches 60% of the 200 GFLOP/s of 2026-01-31\n"
        "  its host is busy, or its clock lower; if it stays: tensorwright doctor"
    )
    crowded = machine.MachineState(
        machine.Load(1.9, 0.3, 2, "a_name_of_15_ch 1234567"), slow, KEPT
    ).warning
    assert max(map(len, f"warning: {crowded}".splitlines())) <= 80


def test_the_peak_is_measured_again_where_one_was_kept() -> None:
    assert check_machine(TARGET, 1) == machine.MachineState(machine.Load())
    machine.keep_ceilings(TARGET, replace(KEPT, threads=1, flops_per_s=1e15))
    state = check_machine(TARGET, 1)
    assert state.now is not None
    assert 0 < state.peak_share < 0.8
    assert "of the 1000000 GFLOP/s of 2026-01-31" in state.warning
