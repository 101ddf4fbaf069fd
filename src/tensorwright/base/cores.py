"""How many cores this process may use: its affinity mask (cpusets are in it), cut by a quota.

A quota of control groups lets a group run for so many microseconds in each period. Version 2 has
`cpu.max`, version 1 `cpu.cfs_quota_us` and `cpu.cfs_period_us`; groups above count as well.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_GROUPS = Path("/proc/self/cgroup")
_ROOT = Path("/sys/fs/cgroup")
_FOLDERS_2 = ("", "unified")
_FOLDERS_1 = ("cpu", "cpu,cpuacct", "cpuacct,cpu")


def available_cores() -> int:
    """Hardware threads for this process; a quota is rounded down, to at least one."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    quota = cpu_quota()
    return count if quota is None else max(1, min(count, math.floor(quota)))


def cpu_quota(groups: Path = _GROUPS, root: Path = _ROOT) -> float | None:
    """The cores that the quotas of this process's control groups amount to; None without any.

    groups   as /proc/self/cgroup      root   where control groups are mounted
    """
    limits = (
        _limit_of(root / name / inner)
        for folders, path in _paths(groups)
        for name in folders
        for inner in (path, *map(str, PurePosixPath(path).parents))
    )
    return min((each for each in limits if each is not None), default=None)


def _paths(groups: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    """The folders where a hierarchy may be mounted, and the path of this process's group in it.

    Inside a container the path may be one of the host's, which is not there; its root counts then.
    """
    try:
        lines = groups.read_text().splitlines()
    except (OSError, ValueError):
        lines = []
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            yield _FOLDERS_2, path.lstrip("/")
        elif "cpu" in controllers.split(","):
            yield _FOLDERS_1, path.lstrip("/")


def _limit_of(folder: Path) -> float | None:
    """The quota of one group, in cores; None where it has none."""
    try:
        quota, period = (folder / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota = (folder / "cpu.cfs_quota_us").read_text()
            period = (folder / "cpu.cfs_period_us").read_text()
        except (OSError, ValueError):
            return None
    try:
        cores = int(quota) / int(period)
    except (ValueError, ZeroDivisionError):  # "max"
        return None
    return cores if cores > 0 else None
