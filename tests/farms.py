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

from tensorwright.farm.connecting import in_brackets

COMMAND = (sys.executable, "-m", "tensorwright")


@contextmanager
def farm_here(home: Path, *workers: Sequence[str], host: str = "127.0.0.1") -> Iterator[str]:
    """The address of a scheduler with workers that get these arguments, while the block lasts."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.bind((host, 0))
        port = probe.getsockname()[1]
    address = f"tcp://{in_brackets(host)}:{port}"
    scheduler = ("farm", "scheduler", address, "--page", "127.0.0.1:0")
    with ExitStack() as stack:
        for arguments in (scheduler, *(("worker", address, *each) for each in workers)):
            stack.callback(_end, started(arguments, home))
        _wait_for(family, host, port)
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


def _wait_for(family: int, host: str, port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with socket.socket(family) as probe:
            if probe.connect_ex((host, port)) == 0:
                return
        time.sleep(0.1)
