"""The page of a report while a search runs: a small server for this machine only.

The page asks every second for newer data.  The session's thread makes the data between
measurements.  The server's threads only send it, which hardly disturbs a measurement.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tensorwright.base import MachineError, now_utc
from tensorwright.report.document import FORMAT
from tensorwright.report.numbers import Values, micro, short
from tensorwright.report.page import render
from tensorwright.tuning.session import Progress, TaskRow

_HERE = "127.0.0.1"
_NAMES = (_HERE, "localhost")
_LOOKS_S = 3.0  # a page that has asked within this time is open
_EVERY_S = 0.05
_SEEN_S = 2.5  # the server waits so long at the end for an open page to ask for the last state


class LiveReport:
    """A `Callback` of a session that serves its page on the loopback interface.  Mutable.

    port   0 for any free port
    Raises:  MachineError if the port cannot be opened.
    """

    def __init__(self, name: str, command: str, port: int = 0) -> None:
        self._document: Values = {
            "format": FORMAT,
            "name": name,
            "command": command,
            "written": now_utc(),
            "answer": {},
            "workloads": [],
            "missing": {},
        }
        self._trials: dict[str, list[Values]] = {}
        self._lock = threading.Lock()
        self._asked_s = -math.inf
        self._reports: list[Values] = []
        self._text = ""  # of the data
        self._is_done = False
        self._is_seen = False  # whether an open page has the present state
        self._show([self._document])
        try:
            self._server = _Server((_HERE, port), self)
        except OSError as error:
            raise MachineError(
                stage="report",
                where=f"port {port}",
                reason=f"it cannot be opened: {error}",
                remedy="give another port, or 0 for any free one",
            ) from error
        threading.Thread(target=self._server.serve_forever, args=(_EVERY_S,), daemon=True).start()

    @property
    def address(self) -> str:
        """The address of the page for a browser."""
        return f"http://{_HERE}:{self._server.server_port}/"

    def on_progress(self, progress: Progress) -> None:
        """As `Callback.on_progress`."""
        for row in progress.rows:
            self._note(row, progress.elapsed_s)
        live: Values = {
            "phase": progress.phase.value,
            "round": progress.round,
            "trials": progress.trials,
            "elapsed_s": short(progress.elapsed_s),
            "left_s": short(progress.eta_s),
            "trials_budget": progress.trials_budget,
            "default_us": micro(progress.default_s),
            "best_us": micro(progress.best_s),
        }
        rows = sorted(progress.rows, key=lambda row: -row.cost_s)
        document = {
            **self._document,
            "written": now_utc(),
            "live": live,
            "workloads": [self._workload(row) for row in rows],
        }
        self._show([document])

    def tell(self, part: str) -> None:
        """Show the part that is measured after the search."""
        document = dict(self._reports[-1])
        document["live"] = {**document.get("live", {}), "phase": f"measuring {part}"}
        self._show([document])

    def finish(self, reports: Sequence[Values]) -> None:
        """Show the report itself from now on."""
        self._is_done = True
        self._show(reports)

    def close(self) -> None:
        """End a session; the page stays until `stop`."""

    def stop(self) -> None:
        """End the server when an open page has the last state, or after a short wait."""
        end = time.monotonic() + _SEEN_S if self._is_looked_at else 0.0
        while not self._is_seen and time.monotonic() < end:
            time.sleep(_EVERY_S)
        self._server.shutdown()
        self._server.server_close()

    def page(self) -> str:
        """The page with the present state."""
        with self._lock:
            return render(self._reports, is_live=not self._is_done)

    def data(self) -> str:
        """The present state, for an open page."""
        with self._lock:
            self._asked_s, self._is_seen = time.monotonic(), True
            return self._text

    def _show(self, reports: Sequence[Values]) -> None:
        text = json.dumps({"is_live": not self._is_done, "reports": list(reports)})
        with self._lock:
            self._reports, self._text, self._is_seen = list(reports), text, False

    @property
    def _is_looked_at(self) -> bool:
        return time.monotonic() - self._asked_s < _LOOKS_S

    def _note(self, row: TaskRow, elapsed_s: float) -> None:
        """Keep the best time of a workload, if it was tried since the last time."""
        trials = self._trials.setdefault(row.key, [])
        is_new = not trials or trials[-1]["number"] != row.trials
        if is_new and row.trials and math.isfinite(row.best_s):
            trials.append(
                {
                    "number": row.trials,
                    "at_s": short(elapsed_s),
                    "time_us": micro(row.best_s),
                    "best_us": micro(row.best_s),
                    "status": "ok",
                }
            )

    def _workload(self, row: TaskRow) -> Values:
        return {
            "key": row.key,
            "name": row.name,
            "weight": short(row.weight),
            "best_us": micro(row.best_s),
            "default_us": micro(row.default_s),
            "trials": list(self._trials.get(row.key, ())),
            "trial_count": row.trials,
        }


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], report: LiveReport) -> None:
        super().__init__(address, _Handler)
        self.report = report


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        """Send the page or its data.

        Requests under another host name are refused, so that a web page cannot read the data by a
        name that it has pointed to this machine.
        """
        if self.headers.get("Host", "").rpartition(":")[0] not in _NAMES:
            self.send_error(HTTPStatus.FORBIDDEN)
        elif self.path == "/":
            self._send(self.server.report.page(), "text/html")
        elif self.path == "/data.json":
            self._send(self.server.report.data(), "application/json")
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""

    def _send(self, text: str, kind: str) -> None:
        body = text.encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)
