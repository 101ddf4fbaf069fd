"""`tensorwright bench rewrite`: rows of a tiny network, their file, what is refused."""

from __future__ import annotations

import importlib
import io
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console
from tests.command_line import Invoke

from tensorwright.base import InputError, MachineError
from tensorwright.graph import GraphBuilder, Partition, simplify
from tensorwright.graph.onnx_export import save_onnx
from tensorwright.peers.process import Arrays, Versions, compare_versions
from tensorwright.records import RecordStore, Setting
from tensorwright.tuning.session import Options
from tensorwright_lab.bench.rewriting.rows import (
    Measured,
    RewriteRow,
    Searched,
    gains_of,
    print_rewrite,
    read_rewrite,
    write_rewrite,
)
from tensorwright_lab.bench.rewriting.runs import GrowthRow, growth_row, print_growth
from tensorwright_lab.comparison import this_build
from tensorwright_lab.suites import suite
from tensorwright_lab.zoo import repeated_blocks

COMMAND = importlib.import_module("tensorwright_lab.bench.rewriting.command")
RUNS = importlib.import_module("tensorwright_lab.bench.rewriting.runs")
FOUND = Searched(10, 8, {"merge": 2}, 1.5, 1.2, 1000, 2000, 99, "rounds", 4.0, 2.0, 6.0, 4.0, True)
PEERS = {"onnxruntime": Measured(3.0, 6.0)}
ROW = RewriteRow("one", FOUND, Measured(8.0, 2.0), PEERS, 0, 1e-6, build=this_build())


@pytest.fixture
def products(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two products that are one, of constants; programs are priced by the time model."""
    monkeypatch.setenv("TENSORWRIGHT_DEFAULT_SCHEDULE", "model")
    b = GraphBuilder("products")
    x = b.input("x", (64, 16))
    for rows, columns in ((16, 512), (512, 16)):
        weights = np.random.default_rng(0).standard_normal((rows, columns)) / np.sqrt(rows)
        x = b.add("matmul", x, b.constant(weights.astype(np.float32)))
    path = tmp_path / "products.onnx"
    save_onnx(b.finish((b.add("relu", x, output="y"),)), path)
    return path


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search in this process: what a process of its own gives is tested once, from end to end."""
    for module in (COMMAND, RUNS):
        monkeypatch.setattr(module, "in_own_process", lambda function, *rest: function(*rest))


@pytest.mark.target
def test_a_tiny_network_from_end_to_end(
    invoke: Invoke, products: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.json"
    words = ("bench", "rewrite", products, "--rounds", 1, "--threads", 1, "--json", path)
    words = (*words, "--no-measure")
    result = invoke(*words)
    assert result.exit_code == 0, result.output
    assert "products: 3 operators became 2, " in result.stderr
    assert "products: associativity 1" in result.stdout
    found = json.loads(path.read_text())
    (row,) = found["rows"]
    searched = row["searched"]
    assert (searched["nodes_before"], searched["nodes_after"]) == (3, 2)
    assert searched["rules"] == {"associativity": 1}
    assert 0 < searched["loaded_bytes"] <= searched["peak_bytes"]
    assert searched["operators_before_s"] > searched["operators_after_s"] > 0
    assert searched["programs_before_s"] > searched["programs_after_s"] > 0
    for times in (row["ours"], row["peers"]["onnxruntime"]):
        assert times["gain"] == pytest.approx(times["before_ms"] / times["after_ms"])
        assert times["failure"] == ""
    assert 0 < row["max_rel_error"] < 1e-4
    assert row["failure"] == ""
    assert found["means"]["ours"] == pytest.approx(row["ours"]["gain"])

    monkeypatch.setattr(COMMAND, "bench_rewriting", lambda *_: pytest.fail("the row is there"))
    again = invoke(*words, "--resume")
    assert again.exit_code == 0, again.output
    assert "products" in again.stdout
    other = invoke(*words, "--resume", "--seed", 1)
    assert other.exit_code == 2
    assert "its rows have seed 0, this run has 1" in other.stderr


@pytest.mark.target
@pytest.mark.usefixtures("inside")
def test_without_the_peer_our_times_stay(
    invoke: Invoke, products: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compare(kind: str, *arguments: object, **options: object) -> object:
        if kind == "onnxruntime":
            raise MachineError(stage="peers", where="peer onnxruntime", reason="not installed")
        return compare_versions(kind, *arguments, **options)

    monkeypatch.setattr(RUNS, "compare_versions", compare)
    path = tmp_path / "rows.json"
    words = ("--exact", "--rounds", 1, "--threads", 1, "--json", path)
    result = invoke("bench", "rewrite", products, *words)
    assert result.exit_code == 0, result.output
    assert "products: peer onnxruntime: not installed" in result.stdout
    assert "products: 3 operators stay as they are" in result.stderr
    (row,) = json.loads(path.read_text())["rows"]
    assert not row["searched"]["is_changed"]
    assert row["ours"]["gain"] == 1.0
    assert row["peers"]["onnxruntime"]["before_ms"] is None


def _answer(number: float) -> Arrays:
    return {"y": np.float32([1.0, number])}


def test_who_is_wrong_has_no_times() -> None:
    times, right, off = Measured(4.0, 2.0, version="1"), _answer(1.0), _answer(1.5)
    runs = dict.fromkeys(("a", "b", "c", "ours"), (times, (right, right)))
    runs["a"] = (times, (off, off))
    measured, error = RUNS.judge(runs)
    assert error == 0.0
    assert measured["a"].failure.startswith("a answers wrongly: off by 5.0e-01")
    assert measured["a"].failure.endswith("; b, c, ours agree")
    assert (measured["a"].gain, measured["b"], measured["ours"]) == (None, times, times)

    runs["ours"] = (times, (right, off))
    measured, error = RUNS.judge(runs)
    assert error == pytest.approx(0.5)
    assert measured["ours"].gain is None
    assert measured["ours"].failure.startswith("ours, rewritten, answers wrongly")

    runs |= {"ours": (times, (right, right)), "b": (times, (right, off))}
    measured, error = RUNS.judge(runs)
    assert error == pytest.approx(0.5)  # what we have rewritten is ours
    assert (measured["b"].gain, measured["ours"]) == (None, times)

    assert RUNS.judge({"a": (Measured(failure="not installed"), ())})[1] is None


@pytest.mark.target
@pytest.mark.usefixtures("inside")
def test_a_peer_and_ours_that_are_wrong_count_nowhere(
    invoke: Invoke, products: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compare(kind: str, *arguments: object, **options: object) -> Versions:
        found: Versions = compare_versions(kind, *arguments, **options)  # type: ignore[arg-type]
        shift = {"onnxruntime": 0.0, "pytorch": 1.0, "ours": 2.0}[kind]
        outputs = tuple({n: np.asarray(a + shift) for n, a in o.items()} for o in found.outputs)
        return replace(found, outputs=outputs)

    monkeypatch.setattr(RUNS, "compare_versions", compare)
    path = tmp_path / "rows.json"
    words = ("--rounds", 1, "--threads", 1, "--no-measure", "--peers", "onnxruntime,pytorch")
    result = invoke("bench", "rewrite", products, *words, "--json", path)
    assert result.exit_code == 1
    found = json.loads(path.read_text())
    (row,) = found["rows"]
    assert (row["ours"]["gain"], row["peers"]["pytorch"]["gain"]) == (None, None)
    assert row["peers"]["onnxruntime"]["gain"] > 0
    assert {"ours", "pytorch"}.isdisjoint(found["means"])
    for name in ("ours", "pytorch"):
        assert f"products: {name} answers wrongly: off by" in result.stdout


@pytest.mark.usefixtures("inside")
def test_both_networks_are_tuned_with_one_budget(
    invoke: Invoke, products: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned: list[tuple[int, float]] = []

    def search(parts: Partition, setting: Setting, store: RecordStore, how: Options) -> object:
        tuned.append((len(parts.workloads), how.minutes or 0.0))
        return SimpleNamespace(trials=5, is_interrupted=False)

    monkeypatch.setattr(RUNS, "search", search)
    path, store = tmp_path / "rows.json", tmp_path / "records.db"
    words = ("--rounds", 0, "--threads", 1, "--no-measure", "--minutes", 3, "--records", store)
    result = invoke("bench", "rewrite", products, *words, "--json", path)
    assert result.exit_code == 0, result.output
    before, after = tuned[0][0], tuned[1][0]
    assert before > after > 0
    assert tuned == [(before, 1.5), (after, 3.0), (before, 1.5)]
    found = json.loads(path.read_text())
    assert found["tuned"]
    assert found["minutes"] == 3
    (row,) = found["rows"]
    assert row["failure"] == ""
    assert row["tuned"] == 15
    assert row["max_rel_error"] < 1e-4


def test_a_model_that_fails_is_a_row(invoke: Invoke, tmp_path: Path) -> None:
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    result = invoke("bench", "rewrite", broken, "--threads", 1)
    assert result.exit_code == 0, result.output
    assert "broken: ModelError: " in result.stdout
    assert "Traceback" not in result.output


def test_rows_come_back_from_their_file(tmp_path: Path) -> None:
    path = str(tmp_path / "rows.json")
    rows = (
        ROW,
        RewriteRow("two", failure="it crashed"),
        replace(ROW, peers={"openvino": Measured(failure="x")}),
    )
    write_rewrite(path, rows, {"seed": 0})
    head, found = read_rewrite(path)
    assert found == rows
    assert head["seed"] == 0
    assert head["means"] == pytest.approx(
        {"operators": 2, "programs": 1.5, "ours": 4, "onnxruntime": 0.5}
    )
    assert read_rewrite(str(tmp_path / "none.json")) == ({}, ())
    content = json.loads(Path(path).read_text())
    for row in content["rows"]:
        row.pop("build")  # as files have it that are older than builds
    Path(path).write_text(json.dumps(content))
    assert {row.build for row in read_rewrite(path)[1]} == {""}
    (tmp_path / "other.json").write_text('{"rows": [{"model": 1}]}')
    with pytest.raises(InputError, match="no rows of bench rewrite"):
        read_rewrite(str(tmp_path / "other.json"))


def test_means_are_of_networks_that_changed() -> None:
    same = replace(ROW, searched=replace(FOUND, is_changed=False), ours=Measured(1.0, 1.0))
    double = replace(ROW, ours=Measured(2.0, 2.0))
    assert gains_of([ROW, same, double])["ours"] == (pytest.approx(2.0), 2)
    assert gains_of([same]) == {}


def test_the_table() -> None:
    console = Console(file=io.StringIO(), width=300)
    print_rewrite([ROW, RewriteRow("two", failure="it crashed", build=this_build())], console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    lines = [line.split() for line in text.splitlines()]
    assert lines[1] == (
        "one 10 > 8 2 1.5 1.2 0 99 rounds 2.00 1.50 8 > 2 4.00 1.0e-06 3 > 6 0.50".split()
    )
    assert "one: merge 2" in text
    assert "two: it crashed" in text
    assert "measured: 4.00 times as fast, the mean of 1 that changed" in text
    assert "measured in onnxruntime: 0.50 times as fast" in text


def test_growth_says_with_which_power_the_seconds_grow() -> None:
    small = growth_row(replace(FOUND, nodes_before=100, cpu_s=1.0), None)
    large = growth_row(replace(FOUND, nodes_before=200, cpu_s=4.0), small)
    assert small.exponent is None
    assert large.exponent == pytest.approx(2.0)
    assert large.gain == pytest.approx(1.5)
    console = Console(file=io.StringIO(), width=300)
    print_growth([small, large], console)
    last = console.file.getvalue().splitlines()[2].split()  # type: ignore[attr-defined]
    assert last[-2:] == ["2.00", "1.20"]


@pytest.mark.usefixtures("inside")
def test_growth_searches_repeated_blocks(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORWRIGHT_DEFAULT_SCHEDULE", "model")
    path = tmp_path / "growth.json"
    words = ("--size", 16, "--size", 8, "--threads", 1, "--json", path)
    result = invoke("bench", "rewrite", "--growth", *words)
    assert result.exit_code == 0, result.output
    rows = [GrowthRow(**row) for row in json.loads(path.read_text())["rows"]]
    assert [row.operators for row in rows] == [8, 16]
    assert rows[1].exponent is not None
    assert [row.steps for row in rows] == [2, 4]
    assert min(row.gain or 0.0 for row in rows) > 1.2
    assert "of n log n" in result.stdout


@pytest.mark.usefixtures("inside")
def test_growth_goes_as_far_as_it_is_told(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORWRIGHT_DEFAULT_SCHEDULE", "model")
    path = tmp_path / "growth.json"
    words = ("--size", 64, "--nodes", 500, "--threads", 1, "--json", path)
    result = invoke("bench", "rewrite", "--growth", *words)
    assert result.exit_code == 0, result.output
    told = json.loads(path.read_text())
    assert told["nodes"] == 500
    assert told["rows"][0]["egraph_nodes"] > 500
    assert told["rows"][0]["stop"] == "saturate: nodes"


@pytest.mark.parametrize("operators", [1, 100, 400])
def test_repeated_blocks_have_so_many_operators(operators: int) -> None:
    graph = repeated_blocks(operators)
    assert abs(len(graph.nodes) - operators) <= 7
    assert len(simplify(graph).nodes) == len(graph.nodes)
    assert str(graph) == str(repeated_blocks(operators))


def test_the_usual_suite_is_that_of_the_searches_before_this_one() -> None:
    names = suite("rewriting")
    assert len(set(names)) == len(names)
    assert {"zoo:nasrnn", "zoo:taso_bert", "zoo:vgg19", "zoo:bert_base"} <= set(names)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--growth", "zoo:vgg19"), "--growth has networks of its own"),
        (("--size", 8), "--size is for --growth"),
        (("--growth", "--minutes", 1), "--growth runs nothing"),
        (("zoo:vgg19", "--peers", "nobody"), "nobody"),
        (("zoo:vgg19", "--resume"), "name it with --json"),
        (("zoo:nobody",), "no such network"),
        (("zoo:vgg19", "--json", "missing/rows.json"), "missing"),
    ],
)
def test_what_cannot_be_is_refused_first(
    invoke: Invoke, words: tuple[object, ...], text: str
) -> None:
    result = invoke("bench", "rewrite", *words)
    assert result.exit_code in (2, 8)
    assert text in result.output
    assert "Traceback" not in result.output
