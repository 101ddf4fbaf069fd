"""Ctrl-C while candidates are proved: what is known is kept, the same command continues."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tensorwright.rewriting.library import read_library


def stopped(start: dict[str, Any], verdicts: Path) -> tuple[subprocess.Popen[Any], Any]:
    """A run that is interrupted as soon as there is a verdict, and what it said of it.

    What was started in the background ignores interrupts, and so would what it starts.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(
        **start, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        signal.signal(signal.SIGINT, before)
        while process.poll() is None and not verdicts.exists():
            time.sleep(0.002)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, errors = process.communicate()
    return process, errors


def test_generate_stops_and_goes_on(child: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    out = tmp_path / "new.rules"
    verdicts = tmp_path / "new.rules.verdicts"
    several = ("--preset", "elementwise", "--max-ops", 2, "--processes", 1)  # takes seconds
    start = child("rules", "generate", *several, "-o", out)
    process, errors = stopped(start, verdicts)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert f"Verdicts are kept in {verdicts}: the same command continues." in errors
    assert not out.exists()

    kept = verdicts.read_text()
    done = subprocess.run(**start, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert verdicts.read_text().startswith(kept)
    keys = [json.loads(line)["key"] for line in verdicts.read_text().splitlines()]
    assert len(keys) == len(set(keys))
    assert len(read_library(out.read_text().splitlines())) >= 2
