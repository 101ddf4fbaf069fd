"""Code for a processor that this one is not: built and saved, and refused wherever it would run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import tensorwright
from tensorwright import base
from tensorwright.artifacts import build_cached, load_kernel
from tensorwright.cli.group import program as command_line
from tensorwright.drivers.c_library import export_c
from tensorwright.expr import Compute, compute, max_of, placeholder
from tensorwright.graph import GraphBuilder, program
from tensorwright.graph.onnx_export import to_onnx
from tensorwright.pipeline import prepare
from tensorwright.profiling import profile
from tensorwright.records import opened
from tensorwright.runtime import Executable, load
from tensorwright.runtime.measuring import measure_peak
from tensorwright.schedule import state_of
from tensorwright.tuning.space import default_trace

AVX512, NEON = base.cpu_target("x86-64-avx512"), base.cpu_target("aarch64-neon")
X = np.linspace(-1, 1, 48, dtype=np.float32).reshape(3, 16)


def network() -> tensorwright.Graph:
    b = GraphBuilder("small")
    weights = b.constant(np.ones((16, 8), np.float32))
    return b.finish([b.add("relu", b.add("matmul", b.input("x", (3, 16)), weights), output="y")])


def own() -> Compute:
    x = placeholder("x", (3, 16))
    return compute("y", (3, 16), lambda i, j: max_of(x[i, j], 0.0))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TENSORWRIGHT_DEFAULT_SCHEDULE", "rule")


@pytest.fixture
def without_avx512(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """As on a processor of the level before; what messages say is missing."""
    if base.detect_target().arch != "x86-64":
        pytest.skip("this machine has no AVX-512 in any case")
    read = base.cpu_targets.read_flags

    def flags(cpuinfo: Path) -> frozenset[str]:
        return frozenset(each for each in read(cpuinfo) if not each.startswith("avx512"))

    monkeypatch.setattr(base.cpu_targets, "read_flags", flags)
    base.gpu_targets._this_machine.cache_clear()
    yield "cannot run its code: it has no avx512bw, avx512cd, avx512dq, avx512f, avx512vl"
    base.gpu_targets._this_machine.cache_clear()


def refused(message: str) -> object:
    return pytest.raises(base.MachineError, match=message)


def test_in_memory(without_avx512: str) -> None:
    for made in (network(), own()):
        executable = tensorwright.compile(made, target=AVX512, threads=1)
        name = executable.plan.name
        with refused(f"executable {name}, target x86-64-avx512: this machine {without_avx512}"):
            executable.run({"x": X})
        with refused(without_avx512):
            executable(X)
        with refused(without_avx512):
            executable.bind({"x": X})
        with refused(without_avx512):
            executable.run_into(
                {"x": X},
                {each.name: np.empty(each.shape, np.float32) for each in executable.outputs},
            )
        with refused(without_avx512):
            executable.profile({"x": X})
        with refused(without_avx512):
            executable.with_plan(executable.plan, threads=1).run({"x": X})
        with refused(without_avx512):
            profile(executable)


def test_loaded(without_avx512: str, tmp_path: Path) -> None:
    path = tmp_path / "small.tw"
    tensorwright.compile(network(), target=AVX512, threads=1).save(path)
    with refused(f"file {path}, target x86-64-avx512: this machine {without_avx512}"):
        load(path)


def test_kernels_and_measurements(without_avx512: str) -> None:
    workload = program((own(),))
    kernel = build_cached(workload, default_trace(state_of(workload), AVX512), AVX512)
    with refused(without_avx512):
        load_kernel(kernel)
    with refused(without_avx512):
        measure_peak(AVX512)
    with refused(without_avx512):
        tensorwright.tune(own(), target=AVX512, trials=1)


@pytest.mark.parametrize(
    "command",
    [
        ["run", "{saved}"],
        ["profile", "{model}", "--target", "x86-64-avx512"],
        ["tune", "{model}", "--target", "x86-64-avx512", "--trials", "1"],
        ["bench", "models", "{model}", "--target", "x86-64-avx512", "--rounds", "1"],
    ],
    ids=lambda command: command[0],
)
def test_commands(without_avx512: str, command: list[str], tmp_path: Path) -> None:
    model, saved = tmp_path / "small.onnx", tmp_path / "small.tw"
    model.write_bytes(to_onnx(network()).SerializeToString())
    executable = tensorwright.compile(network(), target=AVX512, threads=1)
    contents = executable._contents
    Executable(contents.plan, contents.objects, contents.constants, threads=1).save(saved)
    arguments = [each.format(model=model, saved=saved) for each in command]
    found = CliRunner().invoke(command_line, arguments)
    assert found.exit_code == base.MachineError.exit_code, found.output
    assert without_avx512 in " ".join(found.output.split())


def test_another_kind_of_processor(tmp_path: Path) -> None:
    """Nothing is pretended here: its code cannot even be linked."""
    other = NEON if base.detect_target().arch == "x86-64" else AVX512
    executable = tensorwright.compile(network(), target=other, threads=1)
    with refused(f"cannot run its code: it is .*, not {other.triple}"):
        executable.run({"x": X})
    executable.save(tmp_path / "other.tw")
    with refused("cannot run its code"):
        tensorwright.load(tmp_path / "other.tw")
    with refused("cannot run its code"):
        base.check_runs_here(other, "test")


def test_a_c_library_for_another_processor_is_written(without_avx512: str, tmp_path: Path) -> None:
    with opened(None) as store:
        parts = prepare(network(), AVX512)
        files = export_c(parts, AVX512, 1, store, tmp_path, "small")
    assert "example_outputs.bin" not in files, "nothing was run"
    code = (tmp_path / "tw_small.c").read_text()
    for feature in ("avx2", "fma", "avx512f", "avx512vl"):
        assert f'!__builtin_cpu_supports("{feature}")' in code
    assert "TW_SMALL_OTHER_PROCESSOR = 5" in (tmp_path / "tw_small.h").read_text()
