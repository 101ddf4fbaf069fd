"""A scheduler and workers on this machine, in processes of their own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

COMMAND = (sys.executable, "-m", "tensorwright")


@contextmanager
def farm_here(home: Path, *workers: Sequence[str]) -> Iterator[str]:
    """The address of a scheduler with workers that get these arguments, while the block lasts."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    scheduler = ("farm", "scheduler", address, "--page", "127.0.0.1:0")
    with ExitStack() as stack:
        for arguments in (scheduler, *(("worker", address, *each) for each in workers)):
            stack.callback(_end, started(arguments, home))
        _wait_for(port)
        yield address


def started(arguments: Sequence[str], home: Path) -> subprocess.Popen[bytes]:
    """A command that goes on beside the test."""
    return subprocess.Popen(
        [*COMMAND, *arguments],
        env=os.environ | {"TENSORWRIGHT_HOME": str(home)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
