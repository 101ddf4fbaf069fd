"""Networks of many small kernels: a team of threads against a fork for each kernel.

    python benchmarks/kernels/small_kernels.py [MODEL ...] [--threads N] [--rounds N] [--no-peer]

Each network is compiled once. Its executable as compiled, the same with each kernel forking for
itself, the same on one thread, and ONNX Runtime take turns, each in a process of its own. Answers
are compared first. Without models: two recurrent networks of 64 steps written here, recurrent and
light ones of the suites, and two large ones, which must not lose.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tensorwright import compile as compile_model
from tensorwright.base import available_cores
from tensorwright.cli.arguments.models import read_proto, short_name
from tensorwright.cli.printing import print_table
from tensorwright.graph import random_inputs
from tensorwright.graph.imports import load_onnx
from tensorwright.peers.process import PeerProcess, Result, Timing, max_rel_error, rotate
from tensorwright.runtime import Executable, without_teams

RECURRENT = {"lstm": ("LSTM", 4, 64), "gru": ("GRU", 3, 128)}  # operator, gates, hidden
OTHERS = ("zoo:nasrnn", "light:shufflenet", "light:resnet50", "zoo:bert_base")
_STEPS = 64


def recurrent(name: str) -> ModelProto:
    """One layer over 64 steps of a batch of one, its weights drawn from a fixed seed."""
    operator, gates, hidden = RECURRENT[name]
    source = np.random.default_rng(0)
    shapes = {"w": (1, gates * hidden, hidden), "r": (1, gates * hidden, hidden)}
    weights = {
        key: (source.standard_normal(shape) / hidden**0.5).astype(np.float32)
        for key, shape in shapes.items()
    }
    node = helper.make_node(operator, ["x", "w", "r"], ["y"], hidden_size=hidden)
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node],
        name,
        [value("x", TensorProto.FLOAT, (_STEPS, 1, hidden))],
        [value("y", TensorProto.FLOAT, (_STEPS, 1, 1, hidden))],
        [numpy_helper.from_array(array, key) for key, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def race(
    model: str, threads: int, rounds: int, *, has_peer: bool
) -> tuple[Executable, list[Result], list[float]]:
    """The executable of a model; results and errors of teams, forks, one thread, and the peer."""
    proto = recurrent(model) if model in RECURRENT else read_proto(model)
    inputs = random_inputs(load_onnx(proto))
    with tempfile.TemporaryDirectory() as text, ExitStack() as stack:
        folder = Path(text)
        program = compile_model(proto, threads=threads)
        program.save(folder / "teams.tw")
        save_without_teams(program, folder / "forks.tw")
        onnx.save(proto, folder / "model.onnx")
        racing = []
        for name, file, count in (
            ("teams", "teams.tw", threads),
            ("forks", "forks.tw", threads),
            ("one thread", "forks.tw", 1),
        ):
            racing.append(stack.enter_context(PeerProcess(name, "ours")))
            racing[-1].load(str(folder / file), count)
        if has_peer:
            racing.append(stack.enter_context(PeerProcess("ONNX Runtime", "onnxruntime")))
            racing[-1].load(str(folder / "model.onnx"), threads)
        answers = [peer.check(inputs) for peer in racing]
        errors = [max_rel_error(answer, answers[0]) for answer in answers]
        return program, rotate(racing, rounds), errors


def save_without_teams(program: Executable, path: Path) -> None:
    """The same kernels, each forking for itself."""
    program.with_plan(without_teams(program.plan)).save(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=(*RECURRENT, *OTHERS))
    parser.add_argument("--threads", type=int, default=available_cores())
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--no-peer", action="store_true")
    asked = parser.parse_args()
    print(f"{asked.threads} threads, load {os.getloadavg()}")
    rows = []
    for model in asked.models:
        program, results, errors = race(
            model, asked.threads, asked.rounds, has_peer=not asked.no_peer
        )
        name = model if model in RECURRENT else short_name(model)
        teams, rivals = results[0], results[1:]
        time = f"{teams.median_s * 1e6:.0f}" if isinstance(teams, Timing) else str(teams)
        ratios = [_ratio(rival, teams) for rival in rivals]
        rows.append((name, len(program.steps), time, *ratios, f"{max(errors):.0e}"))
    peer = () if asked.no_peer else ("/ ONNX Runtime",)
    head = ("network", "steps", "teams, us", "/ forks", "/ one thread", *peer, "error")
    print_table(head, [tuple(map(str, row)) for row in rows])
    print("speed of teams / that of the others; error: largest difference / largest value")


def _ratio(rival: Result, teams: Result) -> str:
    if isinstance(rival, Timing) and isinstance(teams, Timing):
        return f"{rival.median_s / teams.median_s:.2f}"
    return str(rival)


if __name__ == "__main__":
    main()
