"""`bench decode`: what is measured beside ONNX Runtime, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from tests.unit.graph.gguf.test_decoder import file_of

import tensorwright
from tensorwright.base import MachineError
from tensorwright.graph.imports import whole_model
from tensorwright.graph.onnx_export import save_proto
from tensorwright_lab.bench.decode import DecodeRow, _cells, _library_of, write_genai_config
from tensorwright_lab.suites import check_name, read_network
from tensorwright_lab.zoo import DECODERS

Invoke = Callable[..., Result]
QUICK = ("--prompts", "3,8", "--tokens", 3, "--rounds", 1, "--threads", 1)


def test_rows_of_both_runtimes(invoke: Invoke, tmp_path: Path, home: Path) -> None:
    path, rows = file_of(tmp_path), tmp_path / "rows.json"
    command = ("bench", "decode", path, *QUICK, "--peers", "onnxruntime", "--json", rows)
    result = invoke(*command)
    written = json.loads(rows.read_text())["rows"]
    assert [(row["runtime"], row["prompt"]) for row in written] == [
        ("tensorwright", 3),
        ("onnxruntime", 3),
        ("tensorwright", 8),
        ("onnxruntime", 8),
    ]
    for row in written:
        assert not row["failure"], result.output
        assert row["same"] == 1
        assert row["first_s"] > 0
        assert row["p95_s"] >= row["token_s"] > 0
        assert row["peak_bytes"] > 1e7
        assert (row["bytes_per_s"] > 0) is (row["runtime"] == "tensorwright")


def test_what_cannot_be_read_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    path = file_of(tmp_path)
    save_proto(whole_model(path), tmp_path / "model.onnx")
    for arguments, reason in (
        ((path, "--weights", "int4"), "has weights of its own"),
        ((tmp_path / "model.onnx", "--peers", "llamacpp"), "llama.cpp does not read"),
        ((path, "--peers", "llamacp"), "there is no llamacp"),
        (("zoo:decoder_small", "--weights", "int5"), "there is no int5"),
        ((tmp_path / "model.onnx", "--peers", "inductor"), "inductor does not read"),
        (("zoo:decoder_small", "--weights", "int4", "--peers", "inductor"), "in f32 alone"),
        ((path, "--prompts", "0"), "give numbers from 1 on"),
    ):
        result = invoke("bench", "decode", *arguments)
        assert result.exit_code == 2
        assert reason in result.stderr


def test_a_peer_that_does_not_start_is_a_row(invoke: Invoke, tmp_path: Path, home: Path) -> None:
    path, library = file_of(tmp_path), tmp_path / "none.so"
    command = ("bench", "decode", path, *QUICK, "--peers", "llamacpp", "--llamacpp", library)
    result = invoke(*command)
    assert "its process ended with exit code 1: OSError" in result.stdout


@pytest.mark.parametrize("peer", ["genai", "openvino", "inductor", "llamacpp"])
def test_a_peer_that_is_not_installed_is_named(peer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MachineError, match="it is not installed: pip install"):
        _library_of(peer, "")
    assert _library_of("onnxruntime", "") == ""
    assert _library_of("llamacpp", "given.so") == "given.so"


@pytest.mark.parametrize(("peer", "package"), [("genai", "onnxruntime_genai"), ("openvino",) * 2])
def test_further_peers(invoke: Invoke, tmp_path: Path, home: Path, peer: str, package: str) -> None:
    pytest.importorskip(package)
    path, json_path = file_of(tmp_path), tmp_path / "rows.json"
    result = invoke("bench", "decode", path, *QUICK, "--peers", peer, "--json", json_path)
    rows = json.loads(json_path.read_text())["rows"]
    assert [row["failure"] for row in rows] == [""] * 4, result.output
    assert {row["same"] for row in rows} == {1}


def test_what_is_written_for_genai_is_what_is_read(tmp_path: Path, home: Path) -> None:
    executable, model = tensorwright.compile(file_of(tmp_path)), tmp_path / "model.onnx"
    model.touch()
    write_genai_config(tmp_path, model, executable, 2)
    said = tensorwright.generation_defaults(tmp_path)
    assert (said.model, said.stop, said.longest) == (model, (), 4096)
    assert executable.session(said.state).pairs == executable.session().pairs


def test_more_than_the_bandwidth_is_shown() -> None:
    row = DecodeRow("m", "int4", "tensorwright", 32, 1.0, 0.5, 0.6, 2e9, 1.25, 1.0, 1.0, 2.0, 10**6)
    cells = ("1000.00", "500.00", "600.00", "2", "2.0", "1.25", "1.00", "1.00", "2.00", "1", "")
    assert _cells(row)[4:] == cells


def test_decoders_are_networks_of_the_zoo() -> None:
    small = DECODERS["decoder_small"]
    for name in DECODERS:
        check_name("zoo", name)
    graph = read_network("zoo", "decoder_small")
    assert graph.types["logits"].shape[::2] == (1, small.words)
