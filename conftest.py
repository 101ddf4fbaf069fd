"""What all tests share, also examples in docstrings: a machine, seeds, omissions, turns."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from fcntl import LOCK_EX, LOCK_SH, flock
from importlib.util import find_spec
from pathlib import Path

import pytest

from tensorwright.base import ASSUMED, cpu_target, knobs, missing_here

pytest_plugins = ("tests.draws", "tests.durations")
_OPTIONAL = {
    "tvm": [
        f"lab/src/tensorwright_lab/competitors/metaschedule/{n}.py"
        for n in ("build", "calls", "peer")
    ],
    "skl2onnx": ["lab/src/tensorwright_lab/zoo/foreign/classical.py"],
    "openvino": ["src/tensorwright/peers/competitors/openvino_peer.py"],
}

# Modules of competitors import packages that need not be installed: then they have no examples.
collect_ignore = [
    module
    for package, modules in _OPTIONAL.items()
    if find_spec(package) is None
    for module in modules
]


def pytest_configure() -> None:
    """Let choices be made for an assumed machine: no test depends on what this one measures.

    Code does without the instructions that this one lacks; another architecture is refused.
    """
    able = (each for each in ASSUMED if not missing_here(cpu_target(each.target)))
    os.environ.setdefault(knobs.ASSUME.variable, next(able).name)
    missing = missing_here(cpu_target("native"))
    if missing:
        raise pytest.UsageError(f"tests cannot run here as on {knobs.ASSUME.get()}: {missing}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Let a test that measures times (`alone`) run while the other workers wait."""
    if not _is_worker():
        return (yield)
    folder = item.config.cache.mkdir("turns")
    mode = LOCK_SH if item.get_closest_marker("alone") is None else LOCK_EX
    # Who waits to be alone keeps the others from starting: they would overtake it for ever.
    with ExitStack() as turn:
        with _locked(folder / "next", LOCK_EX):
            turn.enter_context(_locked(folder / "turn", mode))
        return (yield)


def _is_worker() -> bool:
    return "PYTEST_XDIST_WORKER" in os.environ


@contextmanager
def _locked(path: Path, mode: int) -> Iterator[None]:
    with path.open("a") as file:
        flock(file, mode)
        yield
