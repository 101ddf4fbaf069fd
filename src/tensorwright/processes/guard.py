"""End a stopped process when the one that stopped it dies.

A stopped process does not notice that its pipes have closed, and whether the system wakes it
depends on its new parent. So a shell waits at a pipe that only the benchmark holds open. When the
benchmark has ended in any way, the shell ends the competitor.
"""

from __future__ import annotations

import signal
import subprocess

_SCRIPT = 'read _; kill -s KILL -- "-$1" 2>/dev/null'


class Guard:
    """Watches the process group of `pid`, from its creation until `close`."""

    def __init__(self, pid: int) -> None:
        self._shell: subprocess.Popen[bytes] | None = None
        if hasattr(signal, "SIGSTOP"):  # a process that cannot be stopped needs no guard
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT, "sh", str(pid)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                process_group=0,
            )

    def close(self) -> None:
        """Stop watching; call it before the process is waited for. Closing twice does no harm."""
        shell, self._shell = self._shell, None
        if shell is not None:
            shell.kill()
            shell.wait()
            if shell.stdin is not None:
                shell.stdin.close()
