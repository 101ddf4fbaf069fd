"""Fixed kernels: operators and small expressions with fixed traces, and loops written by hand.

`kernels.txt` has the traces, drawn once:

    == C2D.1, x86-64-avx2                  the operator or expression, and the target
    split(y, h, [?t])                      a trace, whose decisions may be open
    with t = 2, 4, 8                       what each decision is in the candidates

`python -m tests.digests.cases FOLDER` writes all texts, for a comparison with those of another
checkout; `--print text` or `features` prints a line of digests for each.
"""

from __future__ import annotations

import functools
import hashlib
import math
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import cycle
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tests.conformance import test_backends as on_processors
from tests.conformance import test_grids as on_cards
from tests.grids import OPENCL_GENERIC, SM_80
from tests.targets import AVX2, AVX512, NEON
from tests.unit.codegen import kernels as loops
from tests.unit.codegen import test_addresses as addresses
from tests.unit.codegen import test_arm as arm
from tests.unit.codegen import test_lane_groups as lanes
from tests.unit.codegen import test_live_operands as windows
from tests.unit.codegen import test_rests as rests
from tests.unit.codegen import test_statements as statements
from tests.unit.loop import test_passes as passes
from tests.unit.schedule.test_joined_loops import TILED, heads
from tests.unit.schedule.test_random_traces import EXPRESSIONS

from tensorwright import base
from tensorwright.artifacts import load_backend, loop_program
from tensorwright.expr import Decision, Fn, mod
from tensorwright.loop import LoopProgram, run_passes, run_target_passes
from tensorwright.schedule import ForKind, Schedulable, Trace, bind, parse_trace, state_of
from tensorwright.tuning.features import Featurizer, features_of, lower_sketch
from tensorwright.tuning.features.groups import groups_of
from tensorwright.tuning.space import Sketch
from tensorwright_lab.cards import LARGE
from tensorwright_lab.cards import kernels as card_kernels
from tensorwright_lab.zoo import operator_cases, operator_program

_PRINTERS = {AVX2.kind: ("llvm", "c"), SM_80.kind: ("cuda", "opencl")}

_LARGE_OPENCL = replace(
    OPENCL_GENERIC, threads_per_block=1024, opt_in_shared_bytes=1 << 24, shared_bytes=1 << 24
)
"""It takes what was drawn for a larger card."""


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A program with a fixed trace; `values` has the decisions of a few candidates."""

    name: str
    source: Schedulable
    target: base.Target
    trace: Trace
    values: dict[str, NDArray[np.int64]]

    def loops(self, target: base.Target) -> LoopProgram:
        return loop_program(self.source, bind(self.trace, self._first()), target)

    def features(self, *, is_open: bool) -> NDArray[np.float32]:
        """The features of all candidates, or of the first one lowered by itself.

        Shapes:  (candidates, statements, columns)
        """
        state = state_of(self.source)
        if not is_open:
            return Featurizer(state, self.target).of_trace(bind(self.trace, self._first()))
        program = lower_sketch(state, Sketch(self.name, self.trace, (), ()))
        return features_of(program, self.values, groups_of(self.target))

    def _first(self) -> dict[str, int]:
        return {name: int(column[0]) for name, column in self.values.items()}


@dataclass(frozen=True, slots=True)
class Written:
    """Loops by hand, or by fixed rules; all passes run on them."""

    name: str
    program: LoopProgram
    target: base.Target

    def loops(self, target: base.Target) -> LoopProgram:
        return run_target_passes(run_passes(self.program), target)


Case = Scheduled | Written


def cases() -> tuple[Case, ...]:
    """All of them, in a fixed order."""
    return (*scheduled(), _of_any_size(), *_on_processors(), *_on_cards())


def scheduled() -> Iterator[Scheduled]:
    """Those with traces."""
    operators = {case.name: case for case in operator_cases(1)}
    for text in Path(__file__).with_name("kernels.txt").read_text().split("== ")[1:]:
        head, *lines = text.splitlines()
        name, target = head.split(", ")
        source: Schedulable = EXPRESSIONS.get(name) or operator_program(operators[name]).workload
        steps = [line for line in lines if not line.startswith("with ")]
        columns = (line[5:].split(" = ") for line in lines if line.startswith("with "))
        values = {of: np.array(column.split(", "), np.int64) for of, column in columns}
        trace = _with_products("\n".join(steps))
        yield Scheduled(name, source, base.parse_target(target), trace, values)


def _of_any_size() -> Written:
    program = loop_program(heads(), parse_trace(TILED), AVX2)
    return Written("heads of any size", program, AVX2)


def _with_products(text: str) -> Trace:
    """A trace in whose text an argument may be a product of decisions."""
    products = {each[1:] for each in re.findall(r"\?[\w*?]+", text) if "*" in each}
    ways = {
        Decision(each.replace("*?", ".")): math.prod(map(Decision, each.split("*?")), start=1)
        for each in products
    }

    def whole(value: object) -> object:
        if isinstance(value, tuple):
            return tuple(map(whole, value))
        return ways.get(value, value) if isinstance(value, Decision) else value

    steps = parse_trace(text.replace("*?", "."))
    return tuple(
        replace(step, **{each.name: whole(getattr(step, each.name)) for each in fields(step)})
        for step in steps
    )


def _on_processors() -> Iterator[Written]:
    f32, turns = base.DType.F32, cycle((AVX2, AVX512, NEON))
    unsigned, signed = base.SHORT_PRODUCTS[0], base.SHORT_PRODUCTS[2]
    programs = (
        on_processors.of_functions(on_processors.BINARY_SAFE, f32, ForKind.VECTOR),
        on_processors.of_functions(on_processors.ON_REALS, f32, ForKind.VECTOR),
        on_processors.of_functions(on_processors.UNARY, base.DType.BF16, ForKind.VECTOR),
        on_processors.of_functions(on_processors.ON_BITS, base.DType.I8, ForKind.VECTOR),
        on_processors.of_functions(on_processors.ON_BITS, base.DType.U64, ForKind.SERIAL),
        on_processors.of_functions(on_processors.ON_BOOLS, base.DType.BOOL, ForKind.VECTOR),
        on_processors.of_functions(on_processors.ON_FLOATS, base.DType.F64, ForKind.SERIAL),
        passes.tiled_copy(14, 9),
        passes.tiled_copy(14, 9, ForKind.PARALLEL),
        passes.sums_of(21, room=24),
        passes.products_of(12),
        addresses.tiled_convolution(4, 2),
        addresses.tile_in_memory(),
        arm.product_by_rows(4),
        windows.convolution(2, 3, 2, 3),
        rests.rows_of_sums(8, 3),
        rests.rows_of_sums(16, 5, base.DType.I32),
        lanes.copied(lanes.enlarged(8, 4), 8),
        lanes.copied(mod((lanes.j + lanes.m) * 3, 33), 8, base.DType.BF16, 5),
        statements.matmul_tile(4, 24, 5, 48),
        loops.product_of_bytes(unsigned, is_tile=True),
        loops.product_of_bytes(signed, is_tile=False),
    )
    for number, program in enumerate(programs):
        yield Written(f"written {number}", program, next(turns))
    with_bytes = base.cpu_target("aarch64-neon+dotprod+i8mm")
    for tile in base.SHORT_PRODUCTS[3:5]:
        yield Written(f"tile {tile.intrinsic}", loops.tile_of_bytes(tile, 24, 4), with_bytes)
    for dot in base.SHORT_PRODUCTS[:3]:
        program = loops.product_of_bytes(dot, is_tile=True)
        yield Written(f"product {dot.intrinsic}", program, with_bytes)


def _on_cards() -> Iterator[Written]:
    thread, vector = ForKind.THREAD_X, ForKind.VECTOR
    floats = on_processors.BINARY_SAFE + on_processors.ON_REALS
    for kernel in card_kernels(LARGE):
        yield Written(kernel.name, kernel.program, SM_80)
    for name, steps in on_cards.PIPELINES.items():
        yield Written(f"pipeline {name}", on_cards.product_by(steps), SM_80)
    programs = (
        on_cards.of_groups(
            {base.DType.F32: floats, base.DType.F16: on_processors.BINARY_SAFE}, thread
        ),
        on_cards.of_groups({base.DType.F32: floats}, vector),
        on_cards.of_groups(
            {base.DType.I8: on_processors.ON_BITS, base.DType.BOOL: (Fn.NOT,)}, thread
        ),
    )
    for number, program in enumerate(programs):
        yield Written(f"functions {number}", program, SM_80)


def texts(case: Case) -> Iterator[tuple[str, str]]:
    """What each printer writes of a case: its name, and the text or the refusal."""
    program = functools.cache(case.loops)
    for name in _PRINTERS[case.target.kind]:
        target = _LARGE_OPENCL if name == "opencl" else case.target
        try:
            yield name, load_backend(name).emit(program(target), target).text
        except base.TensorwrightError as error:
            yield name, f"refused: {error.message()}"


def write(folder: Path) -> None:
    """Write what is digested to files of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    np.set_printoptions(threshold=1_000_000, floatmode="unique")
    for number, case in enumerate(cases()):
        stem = f"{number:03} {case.name} {case.target}".replace(" ", "_")
        for printer, text in texts(case):
            (folder / f"{stem}.{printer}").write_text(text)
        if isinstance(case, Scheduled):
            for is_open in (False, True):
                text = str(case.features(is_open=is_open))
                (folder / f"{stem}.features{int(is_open)}").write_text(text)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def text_line(case: Case) -> str:
    return " ".join(f"{printer} {digest(text.encode())}" for printer, text in texts(case))


def features_line(case: Case) -> str:
    """Of the program of the first candidate, and of all candidates at once."""
    if not isinstance(case, Scheduled):
        return ""
    arrays = [case.features(is_open=is_open) for is_open in (False, True)]
    return " ".join(f"{array.shape} {digest(array.tobytes())}" for array in arrays)


PRINTED = {"text": text_line, "features": features_line}


if __name__ == "__main__":
    with base.override(assume=base.ASSUMED[0].name):
        if sys.argv[1] == "--print":
            line = PRINTED[sys.argv[2]]
            lines = {f"{case.name}, {case.target}": line(case) for case in cases()}
            print("\n".join(f"{name}: {text}" for name, text in lines.items() if text))
        else:
            write(Path(sys.argv[1]))
