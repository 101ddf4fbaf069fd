"""The guard of a stopped process."""

from __future__ import annotations

import signal
import subprocess
import sys

from tensorwright.processes import Guard


def test_the_guard_ends_a_stopped_process_when_its_pipe_closes() -> None:
    command = [sys.executable, "-c", "import time; time.sleep(1000)"]
    with subprocess.Popen(command, process_group=0) as process:
        guard = Guard(process.pid)
        process.send_signal(signal.SIGSTOP)
        assert guard._shell is not None
        assert guard._shell.stdin is not None
        guard._shell.stdin.close()
        assert process.wait(20) == -signal.SIGKILL
        guard.close()
        guard.close()


def test_a_closed_guard_leaves_the_process_alone() -> None:
    with subprocess.Popen([sys.executable], stdin=subprocess.PIPE, process_group=0) as process:
        guard = Guard(process.pid)
        guard.close()
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(20) == 0
