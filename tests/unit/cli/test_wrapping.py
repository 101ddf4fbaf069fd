"""Prose is wrapped on a terminal; what is copied or drawn stays."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Callable
from typing import Any

from tensorwright.cli.group import wrap_prose


def test_prose_and_remedies_in_words_are_wrapped_and_the_rest_stays() -> None:
    program = "    for i in range(16): out[i] = x[i]"
    command = "  try: tensorwright run model.tw --input random"
    text = (
        f"UsageError: x: it is no name of ours\n  try: one of a, b, c, d, e\n{command}\n{program}"
    )
    assert wrap_prose(text, 20).splitlines() == [
        *("UsageError: x: it is", "  no name of ours"),
        *("  try: one of a, b,", "       c, d, e"),
        command,
        program,
    ]


def test_an_error_is_wrapped_at_the_width_of_the_terminal(
    child: Callable[..., dict[str, Any]],
) -> None:
    start = child("run", "none.onnx", "--input", "random")
    plain = subprocess.run(**start, check=False, capture_output=True).stderr
    master, slave = pty.openpty()
    start["env"] |= {"COLUMNS": "30"}
    assert subprocess.run(**start, check=False, stderr=slave).returncode == 3
    os.close(slave)
    shown = os.read(master, 4096).decode()
    os.close(master)
    assert shown.split() == plain.split()
    assert max(map(len, plain.splitlines())) > 30
    prose = [line for line in shown.splitlines() if "tensorwright explain" not in line]
    assert max(map(len, prose)) <= 30
