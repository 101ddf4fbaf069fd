"""A report as one HTML file: the parts in the folder `page`, with the data as JSON inside.

The page fetches nothing.  Texts of a model cannot become markup or code: the data cannot end its
element, scripts write texts only, and the page allows only its own script, by its digest.

The page of a report while a search runs: a small server for this machine only.

The page asks every second for newer data.  The session's thread makes the data between
measurements.  The server's threads only send it, which hardly disturbs a measurement.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import os
import re
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any

from tensorwright.base import MachineError, UsageError, now_utc, write_atomically
from tensorwright.report.document import FORMAT, check_document, profile_document
from tensorwright.report.numbers import Values, micro, short
from tensorwright.tuning.session import Progress
from tensorwright.tuning.task_scheduling import TaskState

SCRIPTS = (
    *("elements", "format", "tables", "charts", "overview", "treemap", "parts", "graphs"),
    *("nests", "workloads", "conditions", "compare", "keyboard", "main"),
)
"""The files of the page in the order in which they are read."""
_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
_ESCAPES = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}


def render(reports: Sequence[Values], *, is_live: bool = False) -> str:
    """The page of one report, or of two that are compared; the second is the newer one.

    is_live   whether the page asks its server for newer data
    """
    script = _script()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    names = " and ".join(str(each["name"]) for each in reports)
    data = {"is_live": is_live, "reports": list(reports)}
    parts = {
        "policy": f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'; connect-src 'self'; base-uri 'none'; form-action 'none'",
        "title": html.escape(f"{names} - tensorwright"),
        "style": _part("report.css"),
        "data": _as_json(data),
        "script": script,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda mark: parts[mark[1]], _part("report.html"))


def write_report(path: str | os.PathLike[str], reports: Sequence[Values]) -> None:
    """Write a page, or the data alone if the name of the file ends in .json."""
    if Path(path).suffix.lower() == ".json":
        whole = reports[0] if len(reports) == 1 else list(reports)
        write_atomically(path, json.dumps(whole, indent=1) + "\n")
    else:
        write_atomically(path, render(reports))


def read_report(path: str | os.PathLike[str]) -> Values:
    """The document in a page, in the data of a page, or in a profile.

    Raises:  UsageError for another file.
    """
    where = f"file {path}"
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            stage="report",
            where=where,
            reason=f"it cannot be read: {error}",
            remedy="give a page that --report wrote",
        ) from None
    embedded = _DATA.search(text)
    try:
        values: Any = json.loads(embedded[1] if embedded else text)
    except (ValueError, RecursionError):
        values = None
    if embedded and isinstance(values, dict):
        reports = values.get("reports")
        values = reports[-1] if isinstance(reports, list) and reports else None
    if isinstance(values, dict) and "network_us" in values and "steps" in values:
        with suppress(LookupError, TypeError, ValueError):  # it is damaged
            return profile_document(values)
    return check_document(values, where)


def _as_json(data: object) -> str:
    """JSON that cannot end the HTML element that contains it."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return re.sub("[<>&\u2028\u2029]", lambda sign: _ESCAPES[sign[0]], text)


@cache
def _script() -> str:
    """All scripts of the page as one, which runs in strict mode."""
    return "\n".join(['"use strict";', *(_part(f"{name}.js") for name in SCRIPTS)])


@cache
def _part(name: str) -> str:
    return (files("tensorwright.report") / "page" / name).read_text("utf-8")


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
        for row in progress.tasks:
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
        rows = sorted(progress.tasks, key=lambda row: -row.run_s)
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

    def _note(self, row: TaskState, elapsed_s: float) -> None:
        """Keep the best time of a workload, if it was tried since the last time."""
        trials = self._trials.setdefault(row.task.workload.key, [])
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

    def _workload(self, row: TaskState) -> Values:
        return {
            "key": row.task.workload.key,
            "name": row.task.workload.name,
            "weight": short(row.task.call_count),
            "best_us": micro(row.best_s),
            "default_us": micro(row.default_s),
            "trials": list(self._trials.get(row.task.workload.key, ())),
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
