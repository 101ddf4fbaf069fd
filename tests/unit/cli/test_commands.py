from __future__ import annotations

import importlib
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from tests.targets import native_target

import tensorwright
from tensorwright.cli.arguments.options import read_shapes
from tensorwright.graph import interpret
from tensorwright.graph.imports import load_onnx
from tensorwright.machine import detect_hardware
from tensorwright.pipeline import prepare
from tensorwright.records import (
    NetworkChoice,
    Record,
    Setting,
    Status,
    open_store,
    record_tool,
    save_choice,
)
from tensorwright.schedule import format_schedule
from tensorwright.tuning.selection import Chooser
from tensorwright_lab.comparison import BenchRow, make_row

Invoke = Callable[..., Result]


@pytest.fixture
def x(tmp_path: Path) -> Path:
    path = tmp_path / "x.npy"
    np.save(path, np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32))
    return path


def test_compile_says_what_is_untuned(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "tiny.tw"
    result = invoke("compile", model, "-o", out)
    assert result.exit_code == 0, result.output
    assert f"{out}: 2 workloads, 2 of them untuned" in result.stdout
    assert "matmul_relu" in result.stdout
    assert tensorwright.load(out).inputs[0].shape == (4, 8)


def test_compile_writes_a_c_library(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    result = invoke("compile", model, "--emit", "c", "-o", tmp_path / "lib")
    assert result.exit_code == 0, result.output
    assert f"make -C {tmp_path / 'lib'}" in result.stdout
    assert (tmp_path / "lib" / "Makefile").is_file()
    assert len(list((tmp_path / "lib" / "kernels").glob("kernel_*.c"))) == 2


def test_a_c_library_has_the_name_that_is_given(
    invoke: Invoke, model: Path, tmp_path: Path
) -> None:
    japanese = model.with_name("日本.onnx")
    shutil.copy(model, japanese)
    emit = ("compile", japanese, "--emit", "c", "-o")
    assert invoke(*emit, tmp_path / "own").exit_code == 0
    assert (tmp_path / "own" / "tw_network.h").is_file()
    assert invoke(*emit, tmp_path / "given", "--name", "nihon").exit_code == 0
    assert "tw_nihon_load" in (tmp_path / "given" / "tw_nihon.h").read_text()
    result = invoke(*emit, tmp_path / "other", "--name", "日本")
    assert result.exit_code == 2
    assert "it has no letter and no digit of ASCII\n  try: --name network" in result.stderr
    result = invoke("compile", model, "-o", tmp_path / "m.tw", "--name", "nihon")
    assert result.exit_code == 2
    assert "only a C library has a name" in result.stderr


def test_run_computes_what_the_reference_does(
    invoke: Invoke, model: Path, x: Path, tmp_path: Path
) -> None:
    graph = load_onnx(model)
    expected = interpret(graph, {"x": np.load(x)})
    out = tmp_path / "tiny.tw"
    assert invoke("compile", model, "-o", out).exit_code == 0
    for program in (model, out):
        result = invoke("run", program, "--input", f"x={x}", "-o", tmp_path / "out.npz")
        assert result.exit_code == 0, result.output
        (name,) = graph.outputs
        assert result.stdout.startswith(f"{name}: float32(4, 8) least ")
        found = np.load(tmp_path / "out.npz")[name]
        np.testing.assert_allclose(found, expected[name], rtol=1e-5, atol=1e-6)


def test_run_takes_archives_and_random_numbers(
    invoke: Invoke, model: Path, x: Path, tmp_path: Path
) -> None:
    np.savez(tmp_path / "all.npz", x=np.load(x), y=np.zeros(3))
    np.savez(tmp_path / "one.npz", other=np.load(x))
    outputs = [
        invoke("run", model, "--input", text).stdout
        for text in (f"x={x}", f"x={tmp_path / 'all.npz'}", f"x={tmp_path / 'one.npz'}")
    ]
    assert len(set(outputs)) == 1
    drawn = [
        invoke("run", model, "--input", text, "--seed", seed).stdout
        for text, seed in (("random", 1), ("x=random", 1), ("random", 2))
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_run_refuses_a_name_without_a_file(invoke: Invoke, model: Path) -> None:
    assert invoke("run", model, "--input", "x").exit_code == 2


def test_inspect_shows_every_stage(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    result = invoke("inspect", model)
    assert result.exit_code == 0, result.output
    for text in ("graph tiny", "layouts of tiny: 0 of 4", "workload softmax", "runs 1 times"):
        assert text in result.stdout
    result = invoke("inspect", model, "--what", "asm,loops,llvm,schedule", "--workload", "softmax")
    places = [result.stdout.index(f"--- {s}:") for s in ("schedule", "loop", "source", "asm")]
    assert places == sorted(places)
    for text in ("by heuristic:", "for ", "define ", ".text"):
        assert text in result.stdout
    assert "matmul_relu" not in result.stdout
    result = invoke("inspect", model, "--what", "graph,rules,partition,loop", "--passes")
    titles = [line for line in result.stdout.splitlines() if line.startswith("---")]
    assert titles[:4] == [
        "--- graph: imported",
        "--- rules: simplify",
        "--- graph: layouts",
        "--- partition",
    ]
    assert [line.split()[-1] for line in titles[4:12]] == (
        "lowered simplify hoist unroll_guarded version partition breakpoints hoist".split()
    )
    assert invoke("compile", model, "-o", tmp_path / "tiny.tw").exit_code == 0
    assert "softmax:" in invoke("inspect", tmp_path / "tiny.tw").stdout


def test_inspect_finds_a_workload_by_its_key(invoke: Invoke, model: Path) -> None:
    shown = invoke("inspect", model, "--what", "workloads").stdout
    key = shown.split()[2]
    assert invoke("inspect", model, "--what", "workloads", "--workload", key[:8]).stdout in shown


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--what", "lop"), "there is no such stage\n  try: did you mean loop?"),
        (("--workload", "softmix"), "did you mean softmax? one of matmul_relu, softmax"),
    ],
)
def test_inspect_says_what_there_is(
    invoke: Invoke, model: Path, options: tuple[str, str], text: str
) -> None:
    result = invoke("inspect", model, *options)
    assert result.exit_code == 2
    assert text in result.stderr


def test_optimize_tunes_and_records_say_so(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    store, out = tmp_path / "r.sqlite", tmp_path / "tiny.tw"
    result = invoke("optimize", model, "-o", out, "--trials", 4, "--threads", 1, "--records", store)
    assert result.exit_code == 0, result.output
    assert "speed-up" in result.stdout
    assert f"{out}: " in result.stdout
    assert "trials" in result.stderr
    assert tensorwright.load(out, threads=1).host_operators == ()

    again = invoke("compile", model, "-o", out, "--threads", 1, "--records", store)
    assert "2 workloads, 0 of them untuned" in again.stdout
    listed = invoke("records", "list", "--records", store).stdout
    assert "matmul_relu" in listed
    assert "records of 2 workloads" in listed
    assert record_tool() in listed
    assert "by other sources" not in listed
    best = invoke("records", "best", "softmax", "--records", store).stdout
    assert best.startswith("workload softmax ")
    assert invoke("records", "best", "conv", "--records", store).exit_code == 2
    near = invoke("records", "best", "soft", "--records", store)
    assert "did you mean softmax?" in near.output

    lines = tmp_path / "r.jsonl"
    exported = invoke("records", "export", lines, "--records", store).stdout
    other = tmp_path / "other.sqlite"
    imported = invoke("records", "import", lines, "--records", other).stdout
    assert int(exported.split()[0]) == int(imported.split()[0]) > 0
    pruned = invoke("records", "prune", "--keep", 1, "--yes", "--records", other).stdout
    assert "2 kept" in pruned
    shown = invoke(
        "inspect", model, "--what", "schedule", "--threads", 1, "--records", store
    ).stdout
    # The choice in the network is kept only where another than the untuned schedules was measured.
    assert len(re.findall(r"^(?:measured in the network|on record):$", shown, re.M)) == 2


def test_inspect_shows_the_choice_in_the_network(
    invoke: Invoke, model: Path, tmp_path: Path
) -> None:
    target, kept = native_target(), tmp_path / "r.sqlite"
    parts = prepare(load_onnx(model), target)
    texts = {
        workload.key: format_schedule(
            Chooser(Setting(target, 1), is_cold=True).unmeasured(workload).trace
        )
        for workload in parts.workloads
    }
    with open_store(kept) as store:
        choice = NetworkChoice(tuple(sorted(texts.items())), 2.0, 1.0)
        save_choice(store, parts, Setting(target, 1, detect_hardware().fingerprint), choice)
    how = ("--what", "schedule", "--threads", 1, "--records", kept)
    assert invoke("inspect", model, *how).stdout.count("measured in the network:") == 2


def test_records_are_removed_after_a_yes(
    invoke: Invoke, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, out = tmp_path / "r.sqlite", tmp_path / "tiny.tw"
    how = ("--threads", 1, "--records", store)
    assert invoke("optimize", model, "-o", out, "--trials", 6, "--quiet", *how).exit_code == 0
    listed = invoke("records", "list", "--workload", "softmax", "--records", store).stdout
    assert "records of 1 workloads" in listed
    lines = tmp_path / "r.jsonl"
    words = ("records", "export", lines, "--records", store, "--workload", "softmax")
    assert invoke(*words).exit_code == 0
    assert "matmul" not in lines.read_text()
    words = ("records", "prune", "--keep", 1, "--records", store)
    monkeypatch.setattr("sys.argv", ["tensorwright"])
    asked = invoke(*words)
    assert asked.exit_code == 2, asked.output
    assert "softmax" in asked.stdout  # what would go is said before
    assert f"\n    tensorwright records prune --keep 1 --records {store} --yes\n" in asked.stderr
    before = invoke("records", "list", "--records", store).stdout
    assert " 0 of them untuned" in invoke("compile", model, "-o", out, *how).stdout
    words = ("records", "delete", "--workload", "softmax", "--records", store)
    assert invoke(*words).exit_code == 2
    assert invoke("records", "list", "--records", store).stdout == before
    assert "records removed" in invoke(*words, "--yes").stdout
    assert "softmax" not in invoke("records", "list", "--records", store).stdout
    assert " 1 of them untuned" in invoke("compile", model, "-o", out, *how).stdout
    missing = invoke(*words, "--yes")
    assert missing.exit_code == 2
    assert "has no record of it" in missing.stderr


def test_records_of_other_sources_are_marked(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite"
    with open_store(path) as store:
        store.append([Record("w", "t", "here", 1, "", (1.0,), Status.OK, tool_version="0.1.0")])
    listed = invoke("records", "list", "--records", path).stdout
    assert "0.1.0 *" in listed
    assert f"* measured by other sources than these, {record_tool()}" in listed


def test_records_of_nothing(invoke: Invoke, home: Path) -> None:
    result = invoke("records", "list")
    assert result.exit_code == 0
    assert result.stdout.endswith(f"0 records of 0 workloads in {home / 'records.sqlite'}\n")
    assert not (home / "records.sqlite").exists()


def test_bench_writes_a_row_for_each_model(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    rows_path = tmp_path / "rows.json"
    result = invoke(
        "bench", "models", broken, model, "--rounds", 1, "--threads", 1, "--check", "--json",
        rows_path,
    )  # fmt: skip
    assert result.exit_code == 1, result.output
    found = json.loads(rows_path.read_text())
    assert found["peak_gflops"] > 0
    assert found["versions"]["llvmlite"]
    assert (found["threads"], found["peers"]) == (1, ["onnxruntime"])
    rows = found["rows"]
    assert [row["model"] for row in rows] == ["broken", "tiny"]
    assert rows[0]["failure"].startswith("ModelError: ")
    assert rows[1]["failure"] == ""
    assert rows[1]["max_rel_error"] <= 1e-4
    assert rows[1]["ratio"] == pytest.approx(rows[1]["peer_ms"] / rows[1]["ours_ms"])
    assert rows[1]["host_operators"] == []
    assert "0 of 2 workloads tuned" in result.stderr
    checked = invoke("bench", "models", model, "--rounds", 0, "--threads", 1, "--check")
    assert checked.exit_code == 0, checked.output


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (make_row("m", "p", 1e-4), True),
        (make_row("m", "p", 1.1e-4), False),
        (make_row("m", "p", float("nan")), False),
        (make_row("m", "p"), False),
        (make_row("m", "p", 0.0, failure="hung"), False),
    ],
)
def test_what_passes(row: BenchRow, expected: bool) -> None:
    from tensorwright_lab.bench.models import passes

    assert passes(row) is expected


def test_bench_wants_models_and_a_peer_that_exists(invoke: Invoke, model: Path) -> None:
    assert invoke("bench", "models").exit_code == 2
    assert invoke("bench", "models", model, "--peer", "nobody").exit_code == 2
    assert invoke("bench", "models", model, "--peers", "onnxruntime,nobody").exit_code == 2
    assert invoke("bench", "models", model, "--untuned", "--minutes", 1).exit_code == 2


def test_bench_tunes_first(
    invoke: Invoke, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tensorwright.drivers import tune as searching

    asked: list[float] = []

    def search(*arguments: Any) -> Any:
        parts, setting, store, how, at = arguments
        asked.append(how.minutes)
        few = replace(how, minutes=None, trials=2)
        return searching.search(parts, setting, store, few, at)

    runs = importlib.import_module("tensorwright_lab.bench.network_runs")
    monkeypatch.setattr(runs, "search", search)
    result = invoke(
        "bench", "models", model, "--rounds", 1, "--threads", 1, "--minutes", 3, "--records",
        tmp_path / "records.sqlite",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert asked == [3]
    assert "tiny: tuning, 3 minutes in all" in result.stderr
    assert "2 of 2 workloads tuned" in result.stderr
    assert "untuned/tuned" in result.stdout


def test_bench_models_keeps_what_a_file_has(
    invoke: Invoke, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.json"
    words = ("bench", "models", model, "--untuned", "--rounds", 0, "--threads", 1, "--json", path)
    assert invoke(*words).exit_code == 0
    models = importlib.import_module("tensorwright_lab.bench.models")
    monkeypatch.setattr(models, "bench_model", lambda *_: pytest.fail("the row is there"))
    result = invoke(*words, "--resume")
    assert result.exit_code == 0, result.output
    assert "tiny" in result.stdout
    other = invoke(*words, "--resume", "--seed", 1)
    assert other.exit_code == 2
    assert "its rows have seed 0, this run has 1" in other.stderr
    assert invoke(*words[:-2], "--resume").exit_code == 2


def test_the_suite_of_the_paper() -> None:
    from tensorwright.cli.arguments.options import split
    from tensorwright_lab.suites import suite

    assert [split(name)[1] for name in suite("paper")] == [
        *("resnet50", "mobilenet_v2", "resnet3d_18", "dcgan", "bert_base")
    ]


def test_the_tensor_before_the_softmax_is_compared(model: Path) -> None:
    from tensorwright.cli.arguments.models import read_proto
    from tensorwright_lab.comparison.agreement import show_logits

    shown = show_logits(read_proto(str(model)))
    assert shown is not None
    graph = load_onnx(shown.model)
    softmax = graph.nodes[-1]
    assert softmax.operator == "softmax"
    assert graph.outputs == (softmax.outputs[0], softmax.inputs[0])
    assert shown.name == softmax.inputs[0]
    assert show_logits(shown.model) is None


def test_demo_ends_with_the_tables(invoke: Invoke, model: Path) -> None:
    result = invoke(
        "demo", "--model", model, "--minutes", 0.01, "--threads", 1, "--quiet", "--rounds", 1
    )
    assert result.exit_code == 0, result.output
    for text in ("untuned ms", "untuned", "tuned", "ONNX Runtime", "largest error"):
        assert text in result.stdout
    named = re.findall(r"docs/\S+\.md", result.stdout.partition("where to go next")[2])
    assert named
    assert all((Path(__file__).parents[3] / page).is_file() for page in named)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x:[1,3,224,224]", {"x": (1, 3, 224, 224)}),
        ("a:[2], b:0=[ 3 , 4 ]", {"a": (2,), "b:0": (3, 4)}),
        ("N:8,x:[]", {"N": 8, "x": ()}),
        ("N=8;M=2", {"N": 8, "M": 2}),
    ],
)
def test_shapes_are_read(text: str, expected: object) -> None:
    assert read_shapes(None, None, text) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["x", "x:[1,-3]", "x:[1", "[1]", "x:[1] y:[2]"])
def test_other_texts_are_no_shapes(text: str, invoke: Invoke, model: Path) -> None:
    result = invoke("inspect", model, "--input-shapes", text)
    assert result.exit_code == 2
    assert "is not of the form" in result.stderr
