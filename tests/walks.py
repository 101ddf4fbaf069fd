"""Which files of the compiler a piece of work goes through, in the order of their first calls.

    python -m tests.walks compile    a small network of ONNX, for this machine
    python -m tests.walks trial      a candidate of a search: proposed, built, measured, recorded
    python -m tests.walks card       a product for a graphics processor that is not there

A line is a file, as deep as its caller, and the function that was called first:

    pipeline.py compile
        graph/model_import.py load_model

Nothing imports what stands after it (`unit/test_layers.py`), so a call of a file in a later folder
is one of a function or an object that was handed down.  Such a step back up is listed, unless the
function was made inside another one.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, MappingProxyType

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper
from tests.unit.test_layers import ORDER, SOURCE

import tensorwright
from tensorwright import artifacts, base, expr, graph, processes, records
from tensorwright.tuning import Task, measuring, session
from tensorwright.tuning.measuring import timing
from tensorwright.tuning.measuring.expected_results import make_expected_results
from tensorwright.tuning.measuring.runner import try_build
from tensorwright.tuning.selection import Chooser

_ROOT = f"{SOURCE}/"


@dataclass
class Walk:
    """What the profiler saw; what a module does while it is imported does not count.

    steps   each file at its first call: how deep, and the function
    up      the calls of files in later folders: caller, callee
    """

    steps: dict[str, tuple[int, str]] = field(default_factory=dict)
    up: set[tuple[str, str]] = field(default_factory=set)
    imports: int = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call; see `sys.setprofile`."""
        own = _file_of(frame)
        if own is None:
            return
        if frame.f_code.co_name == "<module>":
            self.imports += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not self.imports:
            self._note(own, frame)

    def _note(self, own: str, frame: FrameType) -> None:
        caller = frame.f_back
        while caller is not None and _file_of(caller) is None:
            caller = caller.f_back
        by = "" if caller is None else _file_of(caller) or ""
        callee = f"{own} {frame.f_code.co_qualname}"
        if own not in self.steps:
            self.steps[own] = self.steps[by][0] + 1 if by in self.steps else 0, callee
        if caller is not None and "<locals>" not in callee and _is_after(own, by):
            self.up.add((f"{by} {caller.f_code.co_qualname}", callee))

    def __str__(self) -> str:
        return "\n".join(f"{'    ' * depth}{first}" for depth, first in self.steps.values())


def walk(run: Callable[[], object]) -> Walk:
    """What a call goes through."""
    seen = Walk()
    sys.setprofile(seen)
    try:
        run()
    finally:
        sys.setprofile(None)
    return seen


def _file_of(frame: FrameType) -> str | None:
    name = frame.f_code.co_filename
    return name.removeprefix(_ROOT) if name.startswith(_ROOT) else None


def _is_after(file: str, other: str) -> bool:
    """Whether a file's folder stands after that of another; files above all folders are last."""
    own, before = ((*ORDER, each).index(each) for each in (_folder(file), _folder(other)))
    return own > before


def _folder(file: str) -> str:
    return file.partition("/")[0]


def small_network() -> ModelProto:
    """A convolution, its maximum with 0, and a product of what it gives with a matrix."""
    draw = np.random.default_rng(0)
    constants = [
        numpy_helper.from_array(draw.standard_normal(shape).astype(np.float32), name)
        for name, shape in (("w", (8, 3, 3, 3)), ("m", (8, 4)))
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("MatMul", ["f", "m"], ["y"]),
    ]
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", (1, 3, 16, 16)), ("y", (1, 4)))
    )
    return helper.make_model(helper.make_graph(nodes, "small", [x], [y], constants))


def _product() -> graph.Workload:
    a, b = expr.placeholder("a", (64, 64)), expr.placeholder("b", (64, 64))
    k = expr.reduce_axis("k", 64)
    return graph.program(
        [expr.compute("c", (64, 64), lambda i, j: expr.sum_over(a[i, k] * b[k, j], k))]
    )


class _Here(measuring.Runner):
    """Builds and measures in this process, as the workers and the child of a search do."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def build(
        self, requests: Sequence[artifacts.BuildRequest], *_: object
    ) -> list[measuring.BuildResult]:
        """As a worker."""
        return [try_build(each) for each in requests]

    def measure(
        self,
        workload: graph.Workload,
        kernels: Sequence[artifacts.Kernel],
        threads: int,
        best_s: float,
        should_stop: Callable[[], bool] = processes.never,
    ) -> list[timing.Measurement] | None:
        """As the child."""
        expected = make_expected_results(workload, self._folder)
        timing.prepare(expected)
        options = measuring.MeasureOptions()
        return list(timing.try_kernels(expected.key, tuple(kernels), threads, best_s, options))


def compile_walk(_: Path) -> Walk:
    """A network, from ONNX to an executable and one call of it."""
    model = small_network()
    x = np.ones((1, 3, 16, 16), np.float32)
    return walk(lambda: tensorwright.compile(model).run({"x": x}))


def trial_walk(folder: Path) -> Walk:
    """A search of two trials: the untuned schedule, and one that a strategy proposes."""
    here = _Here(folder)
    parts = session.SessionParts(builder=here, runner=here)
    setting = records.Setting(base.cpu_target("native"), 1, "here")
    options = session.Options(trials=2, seed=0, should_rank=False)
    tasks, store = [Task(_product())], records.MemoryStore()
    return walk(lambda: session.tune(tasks, setting, store, options, parts=parts))


def card_walk(_: Path) -> Walk:
    """A product, from its expression to the text for a card."""
    target = base.parse_target("cuda:sm_80")

    def run() -> None:
        chosen = Chooser(records.Setting(target, 1, "none")).choose(_product())
        program = artifacts.loop_program(chosen.workload, chosen.schedule, target)
        artifacts.emit_source(program, target, artifacts.backend_of(target))

    return walk(run)


WALKS: Mapping[str, Callable[[Path], Walk]] = MappingProxyType(
    {"compile": compile_walk, "trial": trial_walk, "card": card_walk}
)
"""By name, in a folder for their files."""


def main(names: Sequence[str]) -> None:
    """Print walks; all if none is named."""
    for name, made in WALKS.items():
        if name in names or not names:
            with tempfile.TemporaryDirectory() as folder, base.override(home=Path(folder)):
                seen = made(Path(folder))
            ups = "\n".join(f"back up: {caller} -> {callee}" for caller, callee in sorted(seen.up))
            print(f"== {name}: {len(seen.steps)} files\n{seen}\n{ups}")


if __name__ == "__main__":
    main(sys.argv[1:])
