"""A network as a C library: it builds without a warning and computes what the executable does."""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.draws import some_of
from tests.targets import native_target

from tensorwright.base import DType, UnsupportedError
from tensorwright.codegen.c import refusal
from tensorwright.drivers.c_library import build_shared, export_c
from tensorwright.graph import Graph, GraphBuilder
from tensorwright.pipeline import prepare
from tensorwright.records import opened

pytestmark = pytest.mark.usefixtures("by_rule")

TARGET = native_target()


def network() -> Graph:
    """A convolution, a branch, and outputs, of which some are inputs of the others' operators."""
    random = np.random.default_rng(0)
    graph = GraphBuilder("small net")
    image = graph.input("image", (1, 3, 12, 12))
    weights = graph.constant(random.standard_normal((8, 3, 3, 3)).astype(np.float32))
    (features,) = graph.apply("conv", (image, weights), pads=(1, 1, 1, 1))
    (positive,) = graph.apply("relu", (features,))
    (flat,) = graph.apply("reshape", (positive,), shape=(1, 1152))
    matrix = graph.constant(random.standard_normal((1152, 10)).astype(np.float32) / 30)
    (scores,) = graph.apply("matmul", (flat, matrix))
    (chances,) = graph.apply("softmax", (scores,), axis=1)
    best, places = graph.apply("topk", (chances,), k=3)
    return graph.finish((positive, chances, best, places))


def small() -> Graph:
    """One operator."""
    graph = GraphBuilder("small")
    return graph.finish(graph.apply("relu", (graph.input("x", (4,)),)))


def export(graph: Graph, folder: Path, name: str = "small") -> None:
    with opened(None) as store:
        parts = prepare(graph, TARGET)
        export_c(parts, TARGET, 2, store, folder, name)


HEADERS = ("features", "math", "stdint", "assert")
WORDS = ("int", "model", "example", "X", "m", "7z", "_", "日本")


@pytest.mark.parametrize("name", some_of([*HEADERS, *WORDS], 4, "names"))
@pytest.mark.drawn
def test_a_network_may_have_any_name(name: str, tmp_path: Path) -> None:
    """A header of the system, a word of C or of the files, a macro (X_OK), a library (libm)."""
    if shutil.which("cc") is None or shutil.which("make") is None:
        pytest.skip("there is no cc, or no make")
    if refusal(TARGET):
        pytest.skip(refusal(TARGET))
    export(small(), tmp_path, name)
    make = ["make", "-C", str(tmp_path), "CFLAGS=-O0 -Werror"]
    build = subprocess.run(make, check=False, capture_output=True, text=True)
    assert build.returncode == 0, build.stderr
    done = subprocess.run([tmp_path / "example", "1"], check=False, capture_output=True, text=True)
    assert done.stdout.count(": equal") == 1, done.stderr


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_it_builds_and_computes_the_same(compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None or shutil.which("make") is None:
        pytest.skip(f"there is no {compiler}, or no make")
    if refusal(TARGET):
        pytest.skip(refusal(TARGET))
    export(network(), tmp_path / "lib", "a network: 1")
    build = subprocess.run(
        ["make", "-C", str(tmp_path / "lib"), f"CC={compiler}", "CFLAGS=-O1 -Werror"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert build.returncode == 0, build.stderr
    shared = build_shared(tmp_path / "lib", "a network: 1")
    assert shared.name == "libtw_a_network_1.so"
    assert ctypes.CDLL(str(shared)).tw_a_network_1_load
    for threads in ("1", "2"):
        done = subprocess.run(
            [tmp_path / "lib" / "example", threads],
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, "OMP_WAIT_POLICY": "passive"},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count(": equal") == 4
        assert f"on {threads} threads" in done.stdout
    weights = tmp_path / "lib" / "tw_a_network_1.weights"
    damaged = bytearray(weights.read_bytes())
    damaged[-1] ^= 1
    weights.write_bytes(damaged)
    refused = subprocess.run(
        [tmp_path / "lib" / "example"], check=False, capture_output=True, text=True
    )
    assert refused.returncode == 1
    assert "damaged, or belongs to another model" in refused.stderr
    _check_another_processor(tmp_path / "lib", compiler)


def _check_another_processor(folder: Path, compiler: str) -> None:
    """A processor that says that it has none of the features gets an error, not a signal."""
    lacking = "-O1 '-D__builtin_cpu_supports(feature)=0'"
    make = ["make", "-C", str(folder), f"CC={compiler}", f"CFLAGS={lacking}"]
    (source,) = folder.glob("tw_a_network*.c")
    build = subprocess.run([*make, "-W", source.name], check=False, capture_output=True, text=True)
    assert build.returncode == 0, build.stderr
    (command,) = (line for line in build.stdout.splitlines() if line.endswith(source.name))
    assert "-mavx" not in command, "who asks must run everywhere"
    refused = subprocess.run([folder / "example"], check=False, capture_output=True, text=True)
    assert refused.returncode == 1
    assert f"this processor lacks some of {', '.join(TARGET.instructions)}" in refused.stderr


def test_the_header_names_inputs_and_outputs(tmp_path: Path) -> None:
    export(network(), tmp_path / "lib")
    header = (tmp_path / "lib" / "tw_small.h").read_text()
    assert "inputs[0]   image: " in header
    assert "#define TW_SMALL_OUTPUTS 4" in header
    assert {p.name for p in (tmp_path / "lib").iterdir()} == {
        *("Makefile", "example.c", "tw_small.c", "tw_small.h", "tw_small.weights", "kernels"),
        *("example_inputs.bin", "example_outputs.bin"),
    }


PROGRAM = """
#include "tw_small.h"
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    const void *inputs[TW_SMALL_INPUTS];
    void *outputs[TW_SMALL_OUTPUTS];
    for (int n = 0; n < TW_SMALL_INPUTS; n++) inputs[n] = calloc(1, tw_small_inputs[n].size_bytes);
    for (int n = 0; n < TW_SMALL_OUTPUTS; n++)
        outputs[n] = calloc(1, tw_small_outputs[n].size_bytes);
    tw_small_model *model;
    int error = tw_small_load(&model, "tw_small.weights");
    if (!error) error = tw_small_run(model, inputs, outputs, 1);
    puts(tw_small_message(error));
    if (!error) tw_small_free(model);
    double sum = 0;
    for (int n = 0; n < 10; n++) sum += ((float *)outputs[1])[n];
    printf("chances sum to %.3f\\n", sum);
    return error;
}
"""


def test_a_program_is_built_as_the_header_says(tmp_path: Path) -> None:
    if shutil.which("cc") is None or shutil.which("make") is None:
        pytest.skip("there is no cc, or no make")
    if refusal(TARGET):
        pytest.skip(refusal(TARGET))
    export(network(), tmp_path)
    (tmp_path / "program.c").write_text(PROGRAM)
    header = (tmp_path / "tw_small.h").read_text()
    lines = [line.strip() for line in header.splitlines()]
    commands = [line for line in lines if line.startswith(("make ", "cc "))]
    assert [command.split()[0] for command in commands] == ["make", "cc"]
    for command in commands:
        words = [*shlex.split(command), *(["CFLAGS=-O1"] if command.startswith("make") else [])]
        done = subprocess.run(words, cwd=tmp_path, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    done = subprocess.run(["./program"], cwd=tmp_path, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "no error\nchances sum to 1.000\n")


def test_an_operator_without_a_kernel_is_refused(tmp_path: Path) -> None:
    graph = GraphBuilder("host")
    values = graph.input("values", (400,), DType.F32)
    best, _ = graph.apply("topk", (values,), k=200)
    with pytest.raises(UnsupportedError, match="operator topk"):
        export(graph.finish((best,)), tmp_path / "lib")
    assert not (tmp_path / "lib").exists()
