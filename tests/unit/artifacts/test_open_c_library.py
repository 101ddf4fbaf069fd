"""A C library of any size: it computes what the executable does, and refuses what it cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeAlias

import pytest
from tests.targets import native_target
from tests.unit.graph import open_networks
from tests.unit.graph.small_networks import Maker

from tensorwright.artifacts.c_library.open_sizes import SizeFields, example_sizes, formula_functions
from tensorwright.base import DType, Formula, UnsupportedError, override
from tensorwright.codegen.c import refusal
from tensorwright.drivers.c_library import export_c
from tensorwright.expr import named_size
from tensorwright.graph import Graph
from tensorwright.pipeline import prepare
from tensorwright.records import opened
from tensorwright.runtime import PlanSize

TARGET = native_target()
PASSIVE = {**os.environ, "OMP_WAIT_POLICY": "passive"}


def scaled() -> Graph:
    """Sizes with words of C and C++ as names, an output that is an input, and joined rows."""
    rows, columns = named_size("int", 2, 12, 2), named_size("class", 1, 20)
    m = Maker("scaled")
    x = m.builder.input("x", (rows, columns))
    codes = m.builder.input("codes", (rows,), DType.I32)
    y = m.add("relu", m.add("concat", x, x, axis=0))
    return m.finish(y, codes, m.add("reshape", y, shape=(2 * rows * columns,)))


def scattered() -> Graph:
    """Sums of rows at positions that the caller gives, with loops of open and of fixed rows."""
    rows, more = named_size("rows", 1, 40), named_size("more", 0, 90)
    m = Maker("scattered")
    x = m.builder.input("x", (rows, 20))
    places = m.builder.input("places", (more, 1), DType.I64)
    y = m.add("scatter_nd", x, places, m.builder.input("u", (more, 20)), reduction="add")
    turned = m.add("transpose", y, perm=(1, 0))
    wide = m.builder.input("wide", (5, rows))
    which = m.builder.input("which", (5, 1), DType.I64)
    return m.finish(y, m.add("scatter_nd", turned, which, wide, reduction="max"))


def export(graph: Graph, folder: Path, name: str) -> None:
    """Write the library, with schedules by heuristic: their C is a fifth as long as what the time
    model would choose, and has guarded lanes and last tiles as well.
    """
    with override(default_schedule="rule"), opened(None) as store:
        export_c(prepare(graph, TARGET), TARGET, 2, store, folder, name)


_FASTEST_BUILD = {"gcc": "-O1", "clang": "-O0"}
Built: TypeAlias = Callable[[Callable[[], Graph], str], Path]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The folder of a network's library, which is written once and built once by each compiler; it
    skips where that is not possible.
    """

    @cache
    def written(network: Callable[[], Graph]) -> Path:
        folder = tmp_path_factory.mktemp("written")
        export(network(), folder, "open")
        return folder

    @cache
    def build(network: Callable[[], Graph], compiler: str) -> Path:
        if shutil.which(compiler) is None or shutil.which("make") is None:
            pytest.skip(f"there is no {compiler}, or no make")
        if refusal(TARGET):
            pytest.skip(refusal(TARGET))
        folder = tmp_path_factory.mktemp("built")
        shutil.copytree(written(network), folder, dirs_exist_ok=True)
        flags = _FASTEST_BUILD[compiler]
        command = ["make", "-C", str(folder), f"CC={compiler}", f"CFLAGS={flags} -Werror"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return folder

    return build


@pytest.mark.parametrize(
    ("network", "compiler", "sizes"),
    [
        (open_networks.perceptron, "gcc", ("n = 1:", "n = 4:", "n = 8:")),
        (
            open_networks.encoder,
            "gcc",
            ("n = 1, s = 1:", "n = 4, s = 22:", "n = 8, s = 106:"),
        ),
        (open_networks.perceptron, "clang", ()),
        (scattered, "gcc", ("more = 0, rows = 1:",)),
        (scaled, "gcc", ("t_class = 1, t_int = 2:", "t_class = 4, t_int = 4:")),
    ],
)
def test_it_computes_the_same_at_all_sizes(
    network: Callable[[], Graph], compiler: str, sizes: tuple[str, ...], built: Built
) -> None:
    graph = network()
    folder = built(network, compiler)
    for threads in ("1", "2"):
        command = [folder / "example", threads]
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=PASSIVE)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count(": equal") == 3 * len(graph.outputs)
        for line in sizes:
            assert line in done.stdout.splitlines()
    given = [folder / "example", "1", "example_inputs_0.bin"]
    done = subprocess.run(given, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    least = [str(size.least * size.divisor) for size in sorted(graph.sizes, key=lambda s: s.name)]
    done = subprocess.run([*given, *least], check=False, capture_output=True, text=True)
    assert (done.returncode, "sum" in done.stdout) == (0, True), done.stderr
    done = subprocess.run([*given, *("0" for _ in least)], check=False, capture_output=True)
    assert done.returncode == 1
    assert b"a size is outside its bounds: " in done.stderr


PROGRAM = """
#include "tw_open.h"
#include <stdio.h>
#include <stdlib.h>

static void run(tw_open_model *model, long long n, long long s, size_t missing_bytes) {
    const tw_open_sizes sizes = {n, s};
    const void *inputs[TW_OPEN_INPUTS];
    void *outputs[TW_OPEN_OUTPUTS];
    size_t output_bytes[TW_OPEN_OUTPUTS];
    for (int i = 0; i < TW_OPEN_INPUTS; i++) inputs[i] = calloc(1, tw_open_inputs[i].size_bytes);
    for (int i = 0; i < TW_OPEN_OUTPUTS; i++) {
        outputs[i] = calloc(1, tw_open_outputs[i].size_bytes);
        output_bytes[i] = tw_open_output_bytes(i, &sizes) - (i == 1 ? missing_bytes : 0);
    }
    puts(tw_open_message(tw_open_run(model, &sizes, inputs, outputs, output_bytes, 1)));
    tw_open_tensor tensor;
    int code = tw_open_output_at(0, &sizes, &tensor);
    if (code) printf("no output: %s\\n", tw_open_message(code));
    else
        printf("%lld %lld %lld %zu\\n", tensor.shape[0], tensor.shape[1], tensor.shape[2],
               tensor.size_bytes);
}

int main(void) {
    tw_open_model *model;
    if (tw_open_load(&model, "tw_open.weights")) return 1;
    printf("%lld %lld %lld %zu\\n", tw_open_outputs[0].shape[0], tw_open_outputs[0].shape[1],
           tw_open_outputs[0].shape[2], tw_open_outputs[0].size_bytes);
    run(model, 16, 512, 0);
    run(model, 2, 7, 0);
    run(model, 2, 7, 1);
    run(model, 0, 7, 0);
    run(model, 2, 513, 0);
    printf("%zu %zu\\n", tw_open_input_bytes(9, &(tw_open_sizes){1, 1}),
           tw_open_input_bytes(0, NULL));
    puts(tw_open_message(tw_open_run(model, NULL, NULL, NULL, NULL, 1)));
    tw_open_free(model);
    return 0;
}
"""

OUTSIDE = """\
a size is outside its bounds: n in 1..16, s in 1..512
no output: a size is outside its bounds: n in 1..16, s in 1..512
"""
PRINTED = f"""\
-1 -1 32 1048576
no error
16 512 32 1048576
no error
2 7 32 1792
an output has more bytes than there is room for
2 7 32 1792
{OUTSIDE}{OUTSIDE}0 0
an argument is missing, or threads is below 1
"""


def test_a_program_gets_codes_for_bad_sizes_and_small_outputs(built: Built) -> None:
    folder = built(open_networks.encoder, "gcc")
    (folder / "program.c").write_text(PROGRAM)
    link = ["gcc", "-Wall", "-Werror", "-o", "program", "program.c", "libtw_open.a"]
    command = [*link, "-fopenmp", "-lm"]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run(["./program"], cwd=folder, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, PRINTED)


def test_the_header_says_the_bounds_of_sizes(tmp_path: Path) -> None:
    export(scaled(), tmp_path, "open")
    header = (tmp_path / "tw_open.h").read_text()
    assert (
        "typedef struct {\n"
        "    long long t_class; /* class in 1..20 */\n"
        "    long long t_int; /* int in 2..12 by 2 */\n"
        "} tw_open_sizes;\n"
    ) in header
    assert "tw_open_sizes sizes = {.t_class = 4, .t_int = 4};" in header
    assert "TW_OPEN_BAD_SIZE = 6," in header
    assert {path.name for path in tmp_path.glob("*.bin")} == {
        f"example_{what}_{n}.bin" for what in ("inputs", "outputs") for n in range(3)
    }
    if shutil.which("c++"):
        (tmp_path / "program.cpp").write_text('#include "tw_open.h"\n')
        command = ["c++", "-Wall", "-Werror", "-fsyntax-only", str(tmp_path / "program.cpp")]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_a_size_without_a_greatest_number_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as refused:
        export(open_networks.decoder_step(), tmp_path / "lib", "open")
    assert str(refused.value) == (
        "size past: it has no greatest number, and a C library reserves its memory once\n"
        '  try: say how large it may be: sizes={"past": "1..MOST"}'
    )
    assert not (tmp_path / "lib").exists()


def test_an_operator_without_a_kernel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="operator topk"):
        export(open_networks.attention(), tmp_path / "lib", "open")


def test_examples_keep_the_rules_of_their_sizes() -> None:
    sizes = (PlanSize("h", 32, 512, 32, 512), PlanSize("n", 1, 2, 1, 2))
    assert example_sizes(sizes) == (
        {"h": 32, "n": 1},
        {"h": 128, "n": 1},
        {"h": 256, "n": 1},
    )
    assert example_sizes(()) == ({},)
    for values in example_sizes(sizes):
        assert all(size.admits(values[size.name]) for size in sizes)


FORMULAS = (
    "2*n - 7",
    "(n - 9) // 4 + 3*m",
    "(n - 9) % 4",
    "min(n, m - 3) * max(2, n // 2)",
    "-(n - 20) // 3",
    "6*m/3",
)


def test_formulas_are_the_same_in_c(tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("there is no cc")
    sizes = (PlanSize("m", 1, 9, 1, 9), PlanSize("n", 1, 9, 1, 9))
    fields = SizeFields.of(sizes)
    prints = "".join(
        f'        printf("%lld\\n", (long long){fields.amount(Formula(text))});\n'
        for text in FORMULAS
    )
    (tmp_path / "program.c").write_text(
        "#include <stdio.h>\n\nstruct sizes { long long m, n; };\n\n"
        f"{formula_functions(prints)}"
        "int main(void) {\n    for (int n = 1; n < 10; n++) {\n"
        f"        struct sizes at = {{4, n}}, *sizes = &at;\n{prints}    }}\n}}\n"
    )
    command = ["cc", "-Wall", "-Wextra", "-Werror", "-o", "program", "program.c"]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run(["./program"], cwd=tmp_path, check=False, capture_output=True, text=True)
    assert [int(line) for line in done.stdout.split()] == [
        Formula(text).at({"m": 4, "n": n}) for n in range(1, 10) for text in FORMULAS
    ]
