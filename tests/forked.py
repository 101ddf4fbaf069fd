"""Worker processes that start as copies of one that has imported the compiler.

A worker takes most of a second to import what it needs, and the tests start hundreds of them.  Here
a server imports it once, runs nothing of it, and is copied for each worker:

    tests  --a request and descriptors-->  server  --fork-->  keeper  --fork-->  worker

The keeper waits for its worker, and tells the tests its number and how it ended.  A worker starts
as it always does where its variables ask for other libraries, or for other code in them, and in
tests of the start itself: they use the fixture `spawned`.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from tensorwright.processes import worker

_IMPORTED = (
    "numpy.ctypeslib",
    "tensorwright.codegen.llvm.backend",
    "tensorwright.pipeline",
    "tensorwright.tuning.measuring",
    "tensorwright.tuning.session",
)
_READ_BEFORE = ("NPY_", "OPENBLAS_CORETYPE", "MALLOC_", "GLIBC_", "LD_")
"""Beginnings of variables that libraries have read when the server is copied."""
_MOST_BYTES = 1 << 17
_NUMBER_BYTES = 8


class Forked:
    """A copied worker, with what `Child` uses of `subprocess.Popen`."""

    def __init__(
        self, server: socket.socket, jobs: int, errors: int, environment: Mapping[str, str]
    ) -> None:
        standard_input, to_worker = os.pipe()
        self._keeper, to_tests = os.pipe()
        request = pickle.dumps((dict(environment), Path.cwd()))
        socket.send_fds(server, [request], [jobs, standard_input, errors, to_tests])
        os.close(standard_input)
        os.close(to_tests)
        self.stdin: IO[bytes] | None = os.fdopen(to_worker, "wb")
        self._code: int | None = None
        self.pid = self._number()

    def _number(self) -> int:
        return int.from_bytes(os.read(self._keeper, _NUMBER_BYTES), "little")

    def _has_ended(self, wait_s: float | None) -> bool:
        if self._code is None and select.select([self._keeper], [], [], wait_s)[0]:
            self._code = os.waitstatus_to_exitcode(self._number())
            os.close(self._keeper)
        return self._code is not None

    def wait(self, timeout: float | None = None) -> int:
        """How it ended; TimeoutExpired if it has not."""
        if not self._has_ended(timeout):
            raise subprocess.TimeoutExpired("worker", timeout or 0.0)
        assert self._code is not None
        return self._code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if not self._has_ended(0.0):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


class Starts:
    """How the tests of a session start workers; stands for `pool.start_process`."""

    def __init__(self, spawn: Any) -> None:
        self._spawn = spawn
        self._server: socket.socket | None = None
        self._variables: dict[str, str] = {}

    def __call__(self, jobs: int, errors: int, environment: Mapping[str, str]) -> Any:
        """Copy the server, which is started when it is first needed, or spawn a process."""
        if self._server is None:
            self._server = self._start(environment)
        if _of_libraries(environment) != self._variables:
            return self._spawn(jobs, errors, environment)
        return Forked(self._server, jobs, errors, environment)

    def _start(self, environment: Mapping[str, str]) -> socket.socket:
        self._variables = _of_libraries(environment)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-m", __name__, str(theirs.fileno())]
            self._process = subprocess.Popen(
                command,
                env=dict(environment),
                pass_fds=(theirs.fileno(),),
                process_group=0,
            )
        return ours

    def close(self) -> None:
        """End the server."""
        if self._server is not None:
            self._server.close()
            self._process.wait()


def _of_libraries(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_READ_BEFORE)}


def serve(descriptor: int) -> None:
    """Fork a keeper, and it a worker, for each request, until the socket closes."""
    for name in _IMPORTED:
        importlib.import_module(name)
    gc.freeze()
    requests = socket.socket(fileno=descriptor)
    while True:
        request, given, _, _ = socket.recv_fds(requests, _MOST_BYTES, 4)
        if not request:
            return
        if os.fork() == 0:
            requests.close()
            _keep(pickle.loads(request), *given)
        for each in given:
            os.close(each)
        with contextlib.suppress(ChildProcessError):  # it has none
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _keep(request: Any, jobs: int, standard_input: int, errors: int, to_tests: int) -> None:
    """Fork a worker, wait for it, and end."""
    os.setpgid(0, 0)
    number = os.fork()
    if number == 0:
        os.close(to_tests)
        _work(request, jobs, standard_input, errors)
    for each in (jobs, standard_input, errors):
        os.close(each)
    os.write(to_tests, number.to_bytes(_NUMBER_BYTES, "little"))
    with contextlib.suppress(BrokenPipeError):
        os.write(to_tests, os.waitpid(number, 0)[1].to_bytes(_NUMBER_BYTES, "little"))
    os._exit(0)


def _work(request: Any, jobs: int, standard_input: int, errors: int) -> None:
    """Be the worker, as `python -m tensorwright.processes.worker` is, and end."""
    code = 1
    try:
        os.setpgid(0, 0)
        for given, place in ((standard_input, 0), (errors, 1), (errors, 2)):
            os.dup2(given, place)
        os.close(standard_input)
        os.close(errors)
        variables, folder = request
        os.environ.clear()
        os.environ.update(variables)
        os.chdir(folder)
        sys.path[:] = ["", *variables["PYTHONPATH"].split(os.pathsep), *sys.path]
        worker.main(jobs)
        code = 0
    except BaseException:  # noqa: BLE001 - the tests read what it prints
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
