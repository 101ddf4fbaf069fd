"""A report as one HTML file: the parts in the folder `page`, with the data as JSON inside.

The page fetches nothing.  Texts of a model cannot become markup or code: the data cannot end its
element, scripts write texts only, and the page allows only its own script, by its digest.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from tensorwright.base import UsageError, write_atomically
from tensorwright.report.document import check_document, profile_document
from tensorwright.report.numbers import Values

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
    """Write a page, or the data alone if the name of the file ends in .json.

    Raises:  OutputError.
    """
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
