"""What users get wrong, and what goes wrong around them: a message, a status, no work lost."""

from __future__ import annotations

import errno
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

import tensorwright
from tensorwright.base import MachineError, output_error, parse_target
from tensorwright.runtime import missing_device

Invoke = Callable[..., Result]
Child = Callable[..., dict[str, Any]]
MakeOnnx = Callable[..., Path]


def refused(result: Result, code: int, *texts: object) -> None:
    """The documented exit code, every text in the message, and no traceback."""
    assert result.exit_code == code, result.output
    kinds = {2: "Usage", 3: "Model", 4: "Unsupported", 5: "Input", 7: "Record", 8: "Output"}
    kind = {**kinds, 9: "Machine"}[code]
    assert result.stderr.startswith(f"{kind}Error: "), result.stderr
    for text in texts:
        assert str(text) in result.stderr
    assert "Traceback" not in result.stderr


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.tw"


# Models


def test_an_open_size(invoke: Invoke, out: Path, make_onnx: MakeOnnx) -> None:
    path = make_onnx("Relu", ["N", 3])
    result = invoke("compile", path, "-o", out)
    assert result.exit_code == 0
    assert "any size: N in 1.." in result.output
    beyond = invoke("run", path, "--input", "random", "--at", "N=0")
    assert beyond.exit_code == 0, beyond.output
    for sizes, text in (("N", "is not of the form"), ("N=1,N=2", "N is given twice")):
        result = invoke("compile", path, "-o", out, "--sizes", sizes)
        assert result.exit_code == 2
        assert text in result.output
    for shapes in ("x:[2,3]", "N:2"):
        assert invoke("compile", path, "-o", out, "--input-shapes", shapes).exit_code == 0


def test_a_c_library_of_a_size_with_bounds(
    invoke: Invoke, make_onnx: MakeOnnx, tmp_path: Path
) -> None:
    path, folder = make_onnx("Relu", ["N", "M"]), tmp_path / "lib"
    arguments = ("compile", path, "--emit", "c", "-o", folder, "--sizes", "M=1..8,N=4..9")
    assert invoke(*arguments).exit_code == 0
    assert "long long N; /* N in 4..9 */" in (folder / "tw_Relu.h").read_text()


def test_a_zero_sized_dimension(invoke: Invoke, out: Path, make_onnx: MakeOnnx) -> None:
    """There is nothing to compute, and that is no error: the output is empty, too."""
    path = make_onnx("Relu", [0, 3])
    assert invoke("compile", path, "-o", out).exit_code == 0
    result = invoke("run", out, "--input", "random")
    assert (result.exit_code, result.stdout) == (0, "y: float32(0, 3)\n")


def test_a_device_that_is_not_here(invoke: Invoke, model: Path, out: Path) -> None:
    if not missing_device(parse_target("cuda:sm_75")):
        pytest.skip("this machine has such a card")
    result = invoke("rewrite", model, "-o", out, "--target", "cuda:sm_75")
    refused(result, 9, "target cuda:sm_75: this machine has no device for its code")


@pytest.mark.parametrize("command", ["optimize", "tune"])
def test_a_target_without_a_device(invoke: Invoke, model: Path, out: Path, command: str) -> None:
    output = () if command == "tune" else ("-o", out)
    result = invoke(command, model, *output, "--target", "cuda:sm_90")
    refused(result, 9, "target cuda:sm_90: this machine has no device for its code")


def test_a_setting_names_a_target_that_is_no_processor(
    invoke: Invoke, model: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORWRIGHT_TARGET", "cuda:sm_90")
    refused(invoke("tune", model), 9, "this machine has no device for its code")
    with pytest.raises(MachineError, match="this machine has no device for its code"):
        tensorwright.optimize(str(model))


# Options


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("compile", "{model}", "-o", "x.tw", "--threads", "100000"), "1<=x<=1024"),
        (("compile", "{model}", "-o", "x.tw", "--seed", str(1 << 64)), "is not in the range"),
        (("compile", "{model}", "-o", "x.tw", "--input-shapes", f"x:[{1 << 64}]"), "is above"),
        (("optimize", "{model}", "-o", "x.tw", "--minutes", "nan"), "not a number of minutes"),
        (("tune", "{model}", "--minutes", "inf"), "not a number of minutes"),
        (("demo", "--minutes", "nan"), "not a number of minutes"),
        (("bench", "models", "{model}", "--peers", ","), "it does not name anything"),
        (("bench", "ops", "--cases", ","), "it does not name anything"),
        (("bench", "ops", "--cases", "NRM.1", "--metaschedule", "NOPE"), "no such case"),
        (("inspect", "{model}", "--what", ""), "it does not name a stage"),
        (("records", "prune", "--failures-before", "lately"), "not a date like 2026-01-31"),
        (("records", "prune", "--keep", str(1 << 64)), "is not in the range"),
    ],
)
def test_a_senseless_option(
    invoke: Invoke, model: Path, arguments: tuple[str, ...], text: str
) -> None:
    result = invoke(*(each.format(model=model) for each in arguments))
    assert result.exit_code == 2, result.output
    assert text in result.stderr
    assert "Traceback" not in result.stderr


# Record stores


@pytest.fixture
def store(invoke: Invoke, model: Path, out: Path, tmp_path: Path) -> Path:
    path = tmp_path / "records.sqlite"
    options = ("--trials", 2, "--threads", 1, "--quiet", "--records", path)
    assert invoke("optimize", model, "-o", out, *options).exit_code == 0
    return path


def test_a_corrupt_record_store(invoke: Invoke, model: Path, out: Path, store: Path) -> None:
    before = out.read_bytes()
    content = bytearray(store.read_bytes())
    content[100:] = b"\xff" * (len(content) - 100)
    store.write_bytes(content)
    for command in ("compile", "optimize"):
        result = invoke(command, model, "-o", out, "--records", store)
        refused(result, 7, f"file {store}", "try: ")
    refused(invoke("records", "list", "--records", store), 7, f"file {store}")
    assert store.read_bytes() == content
    assert out.read_bytes() == before


def test_lines_that_are_no_records(invoke: Invoke, tmp_path: Path, store: Path) -> None:
    lines = tmp_path / "lines.jsonl"
    assert invoke("records", "export", lines, "--records", store).exit_code == 0
    lines.write_text(lines.read_text() + '{"kind": "cake"}\n')
    other = tmp_path / "other.sqlite"
    number = len(lines.read_text().splitlines())
    result = invoke("records", "import", lines, "--records", other)
    refused(result, 7, f"file {lines}, line {number}: unknown kind of fact 'cake'")
    assert "0 records" in invoke("records", "list", "--records", other).stdout


# Outputs


def _limit_files(size_bytes: int) -> Callable[[], None]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, size_bytes))

    return limit


def test_a_full_disk_while_compiling(
    child: Child, wide_model: Path, out: Path, tmp_path: Path
) -> None:
    out.write_bytes(b"what was there")
    start = child("compile", wide_model, "-o", out)
    done = subprocess.run(
        **start, check=False, capture_output=True, preexec_fn=_limit_files(500_000)
    )
    assert done.returncode == 8, done.stderr
    assert done.stderr.startswith(f"OutputError: file {out}: ")
    assert "Traceback" not in done.stderr
    assert out.read_bytes() == b"what was there"
    assert not list(tmp_path.glob(".out.tw*"))


@pytest.mark.filterwarnings("always")
def test_a_home_that_cannot_be_written(
    invoke: Invoke, model: Path, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands that need no cache go on; the others refuse before they read the model."""
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("TENSORWRIGHT_HOME", str(blocked / "home"))
    result = invoke("compile", model, "-o", out)
    assert result.exit_code == 0
    first, *rest = result.stderr.splitlines()
    assert first.startswith(f"warning: folder {blocked / 'home' / 'kernels'} cannot be used: ")
    assert first.endswith("; set TENSORWRIGHT_HOME to a folder that you may write to")
    assert rest == []
    for command in (("optimize", "no.onnx", "-o", out), ("tune", "no.onnx")):
        result = invoke(*command)
        assert result.exit_code == 8
        assert f"OutputError: folder {blocked / 'home'}, where records" in result.stderr
        assert "try: set TENSORWRIGHT_HOME to a folder that you may write to" in result.stderr
    refused(invoke("tune", "no.onnx", "--records", tmp_path / "r.sqlite"), 3, "file no.onnx")
    doctor = invoke("doctor", "--no-measure")
    assert doctor.exit_code == 9
    assert (
        f"home            {blocked / 'home'}: a part of the path is not a folder" in doctor.stdout
    )


def test_a_full_disk_after_tuning(
    child: Child, invoke: Invoke, wide_model: Path, out: Path, home: Path
) -> None:
    start = child("optimize", wide_model, "-o", out, "--trials", 2, "--threads", 1)
    done = subprocess.run(
        **start, check=False, capture_output=True, preexec_fn=_limit_files(900_000)
    )
    assert done.returncode == 8, done.stderr
    assert "Traceback" not in done.stderr
    store = home / "records.sqlite"
    assert f"no measurement is lost: all are in {store}" in done.stderr
    assert f"then\n    tensorwright compile {wide_model} -o FILE\n" in done.stderr
    again = invoke("compile", wide_model, "-o", out, "--threads", 1)
    assert "1 workloads, 0 of them untuned" in again.stdout


@pytest.mark.filterwarnings("default")
def test_a_full_home_does_not_end_a_search_whose_output_lies_elsewhere(
    invoke: Invoke, model: Path, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: str, busy_s: float) -> None:
        raise output_error(path, OSError(errno.ENOSPC, "no space"))

    monkeypatch.setattr("tensorwright.records.store.open_database", full)
    search = ("optimize", model, "-o", out, "--trials", 2, "--threads", 1)
    result = invoke(*search)
    assert result.exit_code == 0, result.output
    assert "the disk is full. The search goes on" in " ".join(result.stderr.split())
    assert tensorwright.load(out).inputs[0].shape == (4, 8)
    refused(invoke(*search, "--records", tmp_path / "own.sqlite"), 8, "the disk is full")
