"""`tensorwright rewrite`: what is written, what is said, what is refused."""

from __future__ import annotations

import importlib
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from tensorwright.drivers import rewrite as graph_search
from tensorwright.expr import Index, named_size
from tensorwright.graph import GraphBuilder, interpret, random_inputs
from tensorwright.graph.imports import load_onnx
from tensorwright.graph.onnx_export import save_onnx
from tensorwright.rewriting.prove import stamp_of

Invoke = Callable[..., Result]


@pytest.fixture
def products(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two products that are one, of constants; programs are priced by the time model."""
    monkeypatch.setenv("TENSORWRIGHT_DEFAULT_SCHEDULE", "model")
    return products_of(64, tmp_path)


@pytest.fixture
def open_products(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same for any number of rows."""
    monkeypatch.setenv("TENSORWRIGHT_DEFAULT_SCHEDULE", "model")
    return products_of(named_size("rows"), tmp_path)


def products_of(rows: Index, folder: Path) -> Path:
    """The file of a model."""
    source = np.random.default_rng(0)
    b = GraphBuilder("products")
    x = b.input("x", (rows, 16))
    for rows, columns in ((16, 512), (512, 16)):
        weights = source.standard_normal((rows, columns)) / np.sqrt(rows)
        x = b.add("matmul", x, b.constant(weights.astype(np.float32)), output=f"wide{columns}")
    path = folder / "products.onnx"
    save_onnx(b.finish((b.add("relu", x, output="y"),)), path)
    return path


def test_a_model_is_rewritten(invoke: Invoke, products: Path, tmp_path: Path) -> None:
    better = tmp_path / "better.onnx"
    result = invoke("rewrite", products, "-o", better, "--no-measure", "--threads", 1)
    assert result.exit_code == 0, result.output
    assert "3 operators became 2" in result.stdout
    assert "associativity: 1" in result.stdout
    before, after = load_onnx(products), load_onnx(better)
    assert (after.inputs, after.outputs) == (before.inputs, before.outputs)
    inputs = random_inputs(before)
    want, found = interpret(before, inputs)["y"], interpret(after, inputs)["y"]
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


def test_an_open_model_stays_open_and_is_checked_for_its_sizes(
    invoke: Invoke, open_products: Path, tmp_path: Path
) -> None:
    better, bounds = tmp_path / "better.onnx", ("--sizes", "rows=8..64 by 8")
    options = (*bounds, "--no-measure", "--threads", 1)
    result = invoke("rewrite", open_products, "-o", better, *options)
    assert result.exit_code == 0, result.output
    assert "3 operators became 2" in result.stdout
    after = load_onnx(better)
    assert after.types["x"].shape == (named_size("rows", 8, 64, 8), 16)
    certificate = better.with_suffix(".certificate.json")
    checked = ("rewrite", "--check", certificate, open_products, better)
    held = invoke(*checked, *bounds)
    assert held.exit_code == 0, held.output
    refused = invoke(*checked)
    assert refused.exit_code == 1
    assert "they are rows with rows <= 64, rows % 8 == 0" in refused.stdout
    assert "--sizes" in refused.stdout


def test_steps_are_explained(invoke: Invoke, products: Path, tmp_path: Path) -> None:
    better, options = tmp_path / "better.onnx", ("--no-measure", "--threads", 1)
    result = invoke("rewrite", products, "-o", better, "--explain", *options)
    assert result.exit_code == 0, result.output
    told = result.stdout[result.stdout.index("1  associativity\n") :]
    assert "?x1 = ?x : f32(64, 16)\n" in told
    assert ": f32(512, 16), constant\n" in told
    certificate = better.with_suffix(".certificate.json")
    checked = invoke("rewrite", "--check", certificate, products, better, "--explain")
    assert checked.exit_code == 0, checked.output
    assert checked.stdout.endswith(told)


THREE = "matmul(matmul(matmul(?x, ?a), ?b), ?c) == matmul(?x, matmul(?a, matmul(?b, ?c)))"


def test_rules_of_ones_own_are_used_and_proved_by_a_check(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the rules that ship: associativity brings three weights together, too."""
    monkeypatch.setenv("TENSORWRIGHT_DEFAULT_SCHEDULE", "model")
    monkeypatch.setattr(graph_search, "load_library", lambda: ())
    model, better, rules = (tmp_path / name for name in ("m.onnx", "better.onnx", "mine.rules"))
    b = GraphBuilder("three")
    x = b.input("x", (64, 16))
    for rows, columns in ((16, 512), (512, 512), (512, 16)):
        weights = np.random.default_rng(rows).standard_normal((rows, columns)) / np.sqrt(rows)
        x = b.add("matmul", x, b.constant(weights.astype(np.float32)))
    save_onnx(b.finish((x,)), model)
    rules.write_text(f"# of my own\n\nthree-products: {THREE}\n")
    words = ("rewrite", model, "-o", better, "--no-measure", "--threads", 1)
    result = invoke(*words, "--rules", rules)
    assert result.exit_code == 0, result.output
    assert "3 operators became 1" in result.stdout
    assert "three-products: 1" in result.stdout
    checked = invoke("rewrite", "--check", better.with_suffix(".certificate.json"), model, better)
    assert checked.exit_code == 0, checked.output
    assert "1 rules proved, 1 steps replayed" in checked.stdout


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("false: matmul(?x, ?y) == matmul(?y, ?x)  [{stamp}]", "the rule is false"),
        ("relu(?x) == relu(", "a name is expected"),
        ("relu(?x)", "there is no =="),
    ],
)
def test_a_rule_that_is_not_proved_is_named_with_its_line(
    invoke: Invoke, products: Path, tmp_path: Path, line: str, text: str
) -> None:
    rules = tmp_path / "mine.rules"
    rules.write_text(f"# a comment\n{line.format(stamp=stamp_of())}\n")
    result = invoke("rewrite", products, "-o", tmp_path / "o.onnx", "--rules", rules)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"UsageError: file {rules}, line 2")
    assert text in result.stderr.splitlines()[0]
    assert "Traceback" not in result.output
    assert not (tmp_path / "o.onnx").exists()


DRAWS = """#!/bin/sh
grep -q 'subgraph cluster_after' || { echo "no such graph" >&2; exit 1; }
echo "<svg of $1>"
"""


@pytest.mark.parametrize(
    ("script", "name", "text"),
    [
        (DRAWS, "picture.svg", "both graphs, differences in colour"),
        ("#!/bin/sh\necho too large >&2\nexit 3\n", "picture.txt", "dot failed: too large"),
        ("", "picture.txt", "Graphviz's dot is not installed"),
    ],
)
def test_a_picture_is_drawn_or_written(
    invoke: Invoke,
    products: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    name: str,
    text: str,
) -> None:
    program = tmp_path / "dot"
    program.write_text(script)
    program.chmod(0o755)
    module = importlib.import_module("tensorwright.cli.rewrite")
    monkeypatch.setattr(module.shutil, "which", lambda _: str(program) if script else None)
    better, picture = tmp_path / "better.onnx", tmp_path / "picture.svg"
    result = invoke("rewrite", products, "-o", better, "--picture", picture, "--threads", 1)
    assert result.exit_code == 0, result.output
    assert f"{tmp_path / name}: " in result.stdout
    assert text in result.stdout
    drawn = (tmp_path / name).read_text()
    assert drawn == "<svg of -Tsvg>\n" if script == DRAWS else "\n  - wide512 = matmul" in drawn


def test_a_model_that_stays_is_written_and_said_so(
    invoke: Invoke, products: Path, tmp_path: Path
) -> None:
    same = tmp_path / "same.onnx"
    result = invoke("rewrite", products, "-o", same, "--exact", "--threads", 1)
    assert result.exit_code == 0, result.output
    assert "3 operators, not changed: nothing faster was found" in result.stdout
    assert len(load_onnx(same).nodes) == 3


def test_what_was_found_until_an_interrupt_is_written(
    invoke: Invoke, products: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("tensorwright.cli.rewrite")
    search = module.rewrite

    def interrupted(*args: Any, **options: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return search(*args, **options)

    monkeypatch.setattr(module, "rewrite", interrupted)
    better = tmp_path / "better.onnx"
    result = invoke("rewrite", products, "-o", better, "--threads", 1)
    assert result.exit_code == 130, result.output
    assert result.stderr == "stopped; the best so far is written\n"
    assert "3 operators, not changed" in result.stdout
    certificate = better.with_suffix(".certificate.json")
    assert invoke("rewrite", "--check", certificate, products, better).exit_code == 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("-o", "missing/folder/out.onnx"), "missing"),
        (("-o", "out.onnx", "--seconds", "-1"), "-1"),
        (("-o", "out.onnx", "--picture", "missing/folder/graphs.svg"), "missing"),
        (("-o", "out.onnx", "--picture", "graphs.png"), "name it FILE.svg"),
        (("-o", "out.onnx", "--target", "z80"), "z80"),
        (("-o", "out.onnx", "--trust"), "--rules: name one"),
        (("-o", "out.onnx", "--rules", "no.rules"), "no.rules: No such file"),
        (("r.onnx", "--check", "c.json", "--rules", "my.rules"), "option --rules"),
    ],
)
def test_what_cannot_be_is_refused_first(
    invoke: Invoke, products: Path, options: tuple[str, ...], text: str
) -> None:
    result = invoke("rewrite", products, *options)
    assert result.exit_code == (8 if "missing" in text else 2)
    assert text in result.output
    assert "Traceback" not in result.output


def test_a_model_that_stays_has_a_certificate_too(
    invoke: Invoke, products: Path, tmp_path: Path
) -> None:
    """Without a rule that may change the order of sums nothing is faster."""
    same = tmp_path / "same.onnx"
    result = invoke("rewrite", products, "-o", same, "--exact", "--no-measure", "--threads", 1)
    assert "not changed: nothing faster was found" in result.stdout
    certificate = same.with_suffix(".certificate.json")
    checked = invoke("rewrite", "--check", certificate, products, same)
    assert checked.exit_code == 0, checked.output
    assert "0 rules proved, 0 steps replayed" in checked.stdout
    better = tmp_path / "better.onnx"
    invoke("rewrite", products, "-o", better, "--no-measure", "--threads", 1)
    refused = invoke("rewrite", "--check", certificate, products, better)
    assert refused.exit_code == 1
    assert "not the graph of the certificate" in refused.output
