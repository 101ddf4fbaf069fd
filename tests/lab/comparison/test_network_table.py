"""The rows of the benchmark, for people and for programs."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from tensorwright.base import InputError, OutputError
from tensorwright_lab.comparison import (
    BenchRow,
    Compiled,
    PeerTime,
    make_row,
    print_rows,
    read_rows,
    this_build,
    write_rows,
)

ROWS = (
    make_row("squeezenet", "", 1.25e-7, 0.002, peers=[PeerTime("onnxruntime", time_ms=1.0)]),
    make_row("a[red]b", "onnxruntime", 0.0, 0.0005, compiled=Compiled(("NonZero", "TopK"))),
)
TUNED = (
    make_row(
        "light:resnet50",
        "",
        0.0,
        ours_s=0.004,
        untuned_s=0.008,
        compiled=Compiled(tuned=20, workloads=24),
        peers=[PeerTime("a", time_ms=6.0, is_held=False), PeerTime("b", time_ms=8.0, is_held=True)],
    ),
    make_row("wild:dlrm", "", 0.0, 0.001, peers=[PeerTime("b", time_ms=2.0, is_held=True)]),
)


def test_rows_as_json(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    write_rows(path, ROWS, {"threads": 2})
    found = json.loads(path.read_text())
    assert found.pop("geometric_mean") == pytest.approx(0.5)
    assert found.pop("threads") == 2
    (mean,) = found.pop("means")
    assert (mean["suite"], mean["ratio"], mean["rows"]) == ("", "ours/best", 1)
    first = {"peer": "onnxruntime", "version": "", "time_ms": 1.0, "max_rel_error": None}
    nothing = {
        "tuned": 0,
        "workloads": 0,
        "untuned_share": None,
        "held_ms": None,
        "max_steps": None,
        "build": this_build(),
        "at": "",
    }
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
            "peers": [first | {"failure": "", "is_held": None}],
            "untuned_ms": 2.0,
            "untuned_ratio": 0.5,
        }
        | nothing,
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
            "untuned_ms": 0.5,
            "untuned_ratio": None,
        }
        | nothing,
    ]
    assert found == {}
    write_rows(path, [make_row("wrong", "onnxruntime", float("nan"))])
    assert json.loads(path.read_text())["rows"][0]["max_rel_error"] is None
    write_rows(path, [make_row("m", peers=[PeerTime("p", max_rel_error=float("inf"))])])
    assert json.loads(path.read_text())["rows"][0]["peers"][0]["max_rel_error"] is None
    write_rows(path, ())
    assert json.loads(path.read_text()) == {
        "geometric_mean": None,
        "means": [],
        "rows": [],
    }
    with pytest.raises(OutputError):
        write_rows(tmp_path / "none" / "rows.json", ROWS)


def test_rows_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    assert read_rows(path) == ({}, ())
    write_rows(path, (*ROWS, *TUNED), {"threads": 2})
    head, rows = read_rows(path)
    assert (head["threads"], rows) == (2, (*ROWS, *TUNED))
    path.write_text('{"rows": [{"model": "x"}]}')
    with pytest.raises(InputError, match="it has no rows of bench models"):
        read_rows(path)


def test_untuned_beside_tuned_and_who_is_not_held() -> None:
    assert [row.untuned_share for row in TUNED] == [0.5, None]
    assert [row.held_ms for row in TUNED] == [8.0, 2.0]
    header, *lines = print_lines(TUNED, "x86-64-avx2")
    assert "untuned ms  tuned ms" in header
    assert [line.split() for line in lines[:2]] == [
        "light:resnet50 0.0e+00 8.00 4.00 6.00* 8.00 a 0.75 1.50 0.50 - none".split(),
        "wild:dlrm 0.0e+00 1.00 - - 2.00 b 2.00 - - - none".split(),
    ]
    assert lines[2].startswith("* not held to x86-64-avx2: in these models a chooses some kernels")
    assert lines[3:] == [
        "untuned/best: geometric mean of 2 ratios 1.22, the least 0.75 (light:resnet50)",
        "tuned/best: geometric mean of 2 ratios 1.73, the least 1.50 (light:resnet50)",
        "ours/best held peer: geometric mean of 2 ratios 2.00, the least 2.00 (light:resnet50)",
    ]


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
            compiled=Compiled(flops=3e6, peak=2e9),
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
        "ours/best: geometric mean of 2 ratios 1.00, the least 0.50 (one)",
    ]


def test_what_failed_is_said_below_the_table() -> None:
    assert print_lines([make_row("vgg", "onnxruntime", failure="ours crashed: [SIGSEGV]")]) == [
        "model  error  ours ms         peer  peer ms  ratio  of peak  on host",
        "vgg        -        -  onnxruntime        -      -        -     none",
        "vgg: ours crashed: [SIGSEGV]",
    ]


def print_lines(rows: Sequence[BenchRow], target: str = "") -> list[str]:
    text = io.StringIO()
    print_rows(rows, Console(file=text, width=20), target)
    return text.getvalue().splitlines()


def test_rows_of_other_builds_are_marked_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    peers = [PeerTime("p", version="1.0", time_ms=4.0)]
    newer = [PeerTime("p", version="1.1", time_ms=4.0)]
    own = make_row("own", "", 0.0, 0.001, peers=newer)
    old = replace(own, peers=tuple(peers), build="")
    rows = (old, replace(old, build="abc"), own)
    write_rows(path, rows)
    found = json.loads(path.read_text())["rows"]
    assert [row["build"] for row in found] == ["", "abc", this_build()]
    for row in found:
        row.pop("build")  # as files have it that are older than builds
    path.write_text(json.dumps({"rows": found}))
    assert [row.build for row in read_rows(path)[1]] == ["", "", ""]
    header, *lines = print_lines(rows)
    assert header.endswith("build")
    assert [line.split()[-1] for line in lines[:3]] == ["unknown", "abc", "this"]
    told, versions = lines[-2:]
    assert told == (
        f"2 of 3 rows were measured by other builds than this, {this_build()}: 1 of an unknown "
        "build, 1 of abc; --resume --same-build measures them again"
    )
    assert versions == "p was measured in several versions: 1.0 (2), 1.1 (1)"


def test_a_framed_table_on_a_terminal() -> None:
    text = io.StringIO()
    print_rows(ROWS, Console(file=text, width=120, force_terminal=True, color_system=None))
    assert "squeezenet" in text.getvalue()
    assert "a[red]b" in text.getvalue()
    assert "┃" in text.getvalue()
