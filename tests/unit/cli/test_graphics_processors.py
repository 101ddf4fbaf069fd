"""Commands with targets that are not processors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result
from tests.cuda_driver import ShimDriver, shim_driver
from tests.grids import opencl_device
from tests.unit.records.test_logs import CUDA

from tensorwright.base import MachineError, UsageError, parse_target
from tensorwright.codegen.cuda import find_nvrtc
from tensorwright.records import Status, opened
from tensorwright.runtime import missing_device

Invoke = Callable[..., Result]


def test_a_model_is_compiled_run_and_shown(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    opencl_device()
    out = tmp_path / "tiny.tw"
    compiled = invoke("compile", model, "-o", out, "--target", "opencl")
    assert compiled.exit_code == 0, compiled.output
    assert "workloads" in compiled.stdout
    ran = invoke("run", out, "--input", "random")
    assert ran.exit_code == 0, ran.output
    shown = invoke("inspect", model, "--target", "opencl:generic", "--what", "source")
    assert "__kernel" in shown.stdout
    profiled = invoke("profile", out, "--repeats", 1)
    assert profiled.exit_code == 0, profiled.output
    assert "copy to the device" in profiled.stdout
    better = tmp_path / "better.onnx"
    rewritten = invoke("rewrite", model, "-o", better, "--target", "opencl", "--seconds", "0.2")
    assert rewritten.exit_code == 0, rewritten.output
    assert better.exists()


def test_machine_code_for_a_card_is_saved_anywhere(
    invoke: Invoke, model: Path, tmp_path: Path
) -> None:
    if find_nvrtc() is None:
        pytest.skip("NVRTC is not installed")
    out = tmp_path / "tiny.tw"
    assert invoke("compile", model, "-o", out, "--target", "cuda:sm_90a").exit_code == 0
    assert out.stat().st_size > 0
    if not missing_device(parse_target("cuda:sm_90a")):
        pytest.skip("this machine has such a card")
    refused = invoke("run", out, "--input", "random")
    assert refused.exit_code == MachineError.exit_code
    assert "target cuda:sm_90a" in refused.output


@pytest.mark.parametrize("command", ["tune", "optimize"])
def test_searches_measure_on_a_device(
    invoke: Invoke, model: Path, tmp_path: Path, command: str
) -> None:
    opencl_device()
    out, records = tmp_path / "out.tw", tmp_path / "records.sqlite"
    output = ("-o", out) if command == "optimize" else ()
    searched = invoke(
        command, model, *output, "--target", "opencl", "--trials", 2, "--records", records
    )
    assert searched.exit_code == 0, searched.output
    assert "2 trials" in searched.output
    with opened(records) as store:
        assert {record.status for record in store.query()} == {Status.OK}
    if command == "optimize":
        ran = invoke("run", out, "--input", "random")
        assert ran.exit_code == 0, ran.output


def test_a_target_that_nobody_knows_is_named(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    refused = invoke("compile", model, "-o", tmp_path / "out.tw", "--target", "cuda:sm_99")
    assert refused.exit_code == UsageError.exit_code
    assert "target 'cuda:sm_99': no such target" in refused.output


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[ShimDriver]:
    yield from shim_driver(monkeypatch)


def test_a_driver_that_is_too_old_ends_a_search_before_it_begins(
    card: ShimDriver, invoke: Invoke, model: Path, tmp_path: Path
) -> None:
    card.write(version=11040, load=222)
    records = tmp_path / "records.sqlite"
    refused = invoke("tune", model, "--target", "cuda", "--trials", 1, "--records", records)
    assert refused.exit_code == MachineError.exit_code
    assert "which is of CUDA 11.4, does not take its machine code" in refused.output
    assert "update the driver, or compile again with a version of" in refused.output
    assert "Traceback" not in refused.output


def test_the_program_of_a_line_of_a_log_is_shown(invoke: Invoke, tmp_path: Path) -> None:
    log = tmp_path / "autotvm.log"
    log.write_text(CUDA + "\n")
    listed = invoke("records", "import", log, "--target", "cuda:sm_80")
    assert "784 threads of a block for 1568" in listed.output
    shown = invoke("inspect", log, "--target", "cuda:sm_80", "--what", "schedule,source")
    assert shown.exit_code == 0, shown.output
    assert "of the log, 784 threads of a block for 1568:" in shown.output
    assert "__global__ void __launch_bounds__(784) kernel(" in shown.output
    text = invoke("inspect", log, "--target", "opencl:generic", "--what", "source")
    assert "__kernel" in text.output
    refused = invoke("inspect", log, "--workload", "conv2d")
    assert refused.exit_code == UsageError.exit_code
