"""How many cores a process may use: quotas of control groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorwright.base import available_cores, cpu_quota


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


VERSION_1 = "4:memory:/m\n2:cpu,cpuacct:/docker/a\n0::/\n"


@pytest.mark.parametrize(
    ("groups", "files", "quota"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/\n", {"cpu.max": "max 100000\n"}, None),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000", "a/cpu.max": "300000 100000"}, 3.0),
        ("0::/a/b\n", {"a/b/cpu.max": "400000 100000", "a/cpu.max": "50000 100000"}, 0.5),
        ("0::/a/b\n", {"a/b/cpu.max": "50000 50000", "cpu.max": "max 100000"}, 1.0),
        ("0::/not/there\n", {"cpu.max": "50000 100000\n"}, 0.5),
        ("0::/a\n", {"unified/a/cpu.max": "200000 100000\n"}, 2.0),
        (
            VERSION_1,
            {
                "cpu,cpuacct/docker/a/cpu.cfs_quota_us": "250000\n",
                "cpu,cpuacct/docker/a/cpu.cfs_period_us": "100000\n",
            },
            2.5,
        ),
        (
            VERSION_1,
            {
                "cpu/docker/a/cpu.cfs_quota_us": "-1",
                "cpu/docker/a/cpu.cfs_period_us": "100000",
                "cpu/docker/cpu.cfs_quota_us": "150000",
                "cpu/docker/cpu.cfs_period_us": "100000",
                "cpu/cpu.cfs_quota_us": "800000",
                "cpu/cpu.cfs_period_us": "100000",
            },
            1.5,
        ),
        (VERSION_1, {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        (VERSION_1, {"cpu/cpu.cfs_quota_us": "1", "cpu/cpu.cfs_period_us": "0"}, None),
        ("0::/\n", {"cpu.max": "nonsense"}, None),
        ("", {"cpu.max": "100000 100000"}, None),
    ],
)
def test_quotas(groups: str, files: dict[str, str], quota: float | None, tmp_path: Path) -> None:
    write(tmp_path, {"groups": groups, **files})
    assert cpu_quota(tmp_path / "groups", tmp_path) == quota


def test_no_groups_are_no_quota(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path / "absent", tmp_path) is None


@pytest.mark.parametrize(
    ("mask", "quota", "cores"),
    [
        ({0, 1, 2, 3}, None, 4),
        ({3}, None, 1),
        ({3}, 2.5, 1),
        ({0, 1, 2, 3}, 2.5, 2),
        ({0, 1, 2, 3}, 1.5, 1),
        ({0, 1, 2, 3}, 0.5, 1),
        ({0, 1}, 8.0, 2),
    ],
)
def test_cores_are_those_of_the_mask_cut_by_the_quota(
    mask: set[int], quota: float | None, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: mask, raising=False)
    monkeypatch.setattr("tensorwright.base.machines.cpu_quota", lambda: quota)
    assert available_cores() == cores
