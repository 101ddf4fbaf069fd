"""The rows of the benchmark, for people and for programs."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from tensorwright.base import OutputError
from tensorwright.peers import make_row, print_rows, write_rows

ROWS = (
    make_row("squeezenet", "onnxruntime", 1.25e-7, 0.002, 0.001),
    make_row("a[red]b", "onnxruntime", 0.0, 0.0005, None, ["NonZero", "TopK"]),
)


def test_rows_as_json(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    write_rows(path, ROWS)
    assert json.loads(path.read_text()) == [
        {
            "model": "squeezenet",
            "max_rel_error": 1.25e-7,
            "ours_ms": 2.0,
            "peer": "onnxruntime",
            "peer_ms": 1.0,
            "ratio": 0.5,
            "host_operators": [],
            "failure": "",
        },
        {
            "model": "a[red]b",
            "max_rel_error": 0.0,
            "ours_ms": 0.5,
            "peer": "onnxruntime",
            "peer_ms": None,
            "ratio": None,
            "host_operators": ["NonZero", "TopK"],
            "failure": "",
        },
    ]
    write_rows(path, [make_row("wrong", "onnxruntime", float("nan"))])
    assert json.loads(path.read_text())[0]["max_rel_error"] is None
    write_rows(path, ())
    assert json.loads(path.read_text()) == []
    with pytest.raises(OutputError):
        write_rows(tmp_path / "none" / "rows.json", ROWS)


def test_plain_lines_where_there_is_no_terminal() -> None:
    text = io.StringIO()
    print_rows(ROWS, Console(file=text, width=20))
    assert text.getvalue().splitlines() == [
        "model         error  ours ms         peer  peer ms  ratio        on host",
        "squeezenet  1.2e-07     2.00  onnxruntime     1.00   0.50           none",
        "a[red]b     0.0e+00   0.5000  onnxruntime        -      -  NonZero, TopK",
    ]


def test_what_failed_is_said_below_the_table() -> None:
    text = io.StringIO()
    rows = [make_row("vgg", "onnxruntime", failure="ours crashed: [SIGSEGV]")]
    print_rows(rows, Console(file=text))
    assert text.getvalue().splitlines() == [
        "model  error  ours ms         peer  peer ms  ratio  on host",
        "vgg        -        -  onnxruntime        -      -     none",
        "vgg: ours crashed: [SIGSEGV]",
    ]


def test_a_framed_table_on_a_terminal() -> None:
    text = io.StringIO()
    print_rows(ROWS, Console(file=text, width=120, force_terminal=True, color_system=None))
    assert "squeezenet" in text.getvalue()
    assert "a[red]b" in text.getvalue()
    assert "┃" in text.getvalue()
