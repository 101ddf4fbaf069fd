"""The rows of the benchmark, for people and for programs."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from tensorwright.base import OutputError
from tensorwright.peers import BenchRow, PeerTime, make_row, print_rows, write_rows

ROWS = (
    make_row("squeezenet", "onnxruntime", 1.25e-7, 0.002, 0.001),
    make_row("a[red]b", "onnxruntime", 0.0, 0.0005, None, ["NonZero", "TopK"]),
)


def test_rows_as_json(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    write_rows(path, ROWS, {"threads": 2})
    found = json.loads(path.read_text())
    assert found.pop("geometric_mean") == pytest.approx(0.5)
    assert found.pop("threads") == 2
    assert found.pop("rows") == [
        {
            "model": "squeezenet",
            "max_rel_error": 1.25e-7,
            "ours_ms": 2.0,
            "peer": "onnxruntime",
            "peer_ms": 1.0,
            "ratio": 0.5,
            "host_operators": [],
            "failure": "",
            "peak_share": None,
            "peers": [],
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
            "peak_share": None,
            "peers": [],
        },
    ]
    assert found == {}
    write_rows(path, [make_row("wrong", "onnxruntime", float("nan"))])
    assert json.loads(path.read_text())["rows"][0]["max_rel_error"] is None
    write_rows(path, [make_row("m", peers=[PeerTime("p", max_rel_error=float("inf"))])])
    assert json.loads(path.read_text())["rows"][0]["peers"][0]["max_rel_error"] is None
    write_rows(path, ())
    assert json.loads(path.read_text()) == {"geometric_mean": None, "rows": []}
    with pytest.raises(OutputError):
        write_rows(tmp_path / "none" / "rows.json", ROWS)


def test_plain_lines_where_there_is_no_terminal() -> None:
    assert print_lines(ROWS) == [
        "model         error  ours ms         peer  peer ms  ratio  of peak        on host",
        "squeezenet  1.2e-07     2.00  onnxruntime     1.00   0.50        -           none",
        "a[red]b     0.0e+00   0.5000  onnxruntime        -      -        -  NonZero, TopK",
    ]


def test_several_peers_have_columns_and_the_best_is_named() -> None:
    rows = [
        make_row(
            name,
            max_rel_error=1e-7,
            ours_s=0.002,
            flops=3e6,
            peak=2e9,
            peers=[
                PeerTime("a", time_ms=a),
                PeerTime("b", time_ms=b, failure="" if b else "b: no"),
            ],
        )
        for name, a, b in (("one", 4.0, 1.0), ("two", 4.0, None))
    ]
    assert print_lines(rows) == [
        "model    error  ours ms  a ms  b ms  best  ratio  of peak  on host",
        "one    1.0e-07     2.00  4.00  1.00     b   0.50     75 %     none",
        "two    1.0e-07     2.00  4.00     -     a   2.00     75 %     none",
        "two: b: no",
        "geometric mean of 2 ratios 1.00, the least 0.50 (one)",
    ]


def test_what_failed_is_said_below_the_table() -> None:
    assert print_lines([make_row("vgg", "onnxruntime", failure="ours crashed: [SIGSEGV]")]) == [
        "model  error  ours ms         peer  peer ms  ratio  of peak  on host",
        "vgg        -        -  onnxruntime        -      -        -     none",
        "vgg: ours crashed: [SIGSEGV]",
    ]


def print_lines(rows: Sequence[BenchRow]) -> list[str]:
    text = io.StringIO()
    print_rows(rows, Console(file=text, width=20))
    return text.getvalue().splitlines()


def test_a_framed_table_on_a_terminal() -> None:
    text = io.StringIO()
    print_rows(ROWS, Console(file=text, width=120, force_terminal=True, color_system=None))
    assert "squeezenet" in text.getvalue()
    assert "a[red]b" in text.getvalue()
    assert "┃" in text.getvalue()
