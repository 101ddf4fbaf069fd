"""Time several graphs of one network in turns: in tensorwright, or in another runtime."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence

from tensorwright.base import Target
from tensorwright.graph import Graph, random_inputs
from tensorwright.graph.onnx_export import save_onnx
from tensorwright.peers.process import compare_versions
from tensorwright.pipeline import cut, finish
from tensorwright.records import Records, opened
from tensorwright.runtime import Executable, usable_threads
from tensorwright.runtime.measuring import seconds_in_turns

_TURNS = 40
_TURNS_S = 4.0


def seconds_here(
    graphs: Sequence[Graph], target: Target, threads: int | None, records: Records | None
) -> Sequence[float]:
    """Seconds of an executable of each simplified graph, with the schedules on record."""
    executables: list[Executable] = []
    with opened(records) as store:
        for graph in graphs:
            parts = cut(graph, target, threads)
            executables.append(finish(parts, target, threads, store))
    inputs = random_inputs(parts.graph)
    times = seconds_in_turns(executables, inputs, rounds=_TURNS, limit_s=_TURNS_S)
    assert times is not None, "nothing stops the runs"
    return times


def seconds_elsewhere(
    graphs: Sequence[Graph], runtime: str, threads: int | None
) -> Sequence[float]:
    """Seconds of each graph as an ONNX model in another runtime.

    Raises:  MachineError if the other runtime is not installed, or fails.
    """
    with tempfile.TemporaryDirectory(prefix="tensorwright-trial-") as folder:
        paths: list[str] = []
        for number, graph in enumerate(graphs):
            paths.append(f"{folder}/{number}.onnx")
            save_onnx(graph, paths[-1])
        inputs = random_inputs(graphs[0])
        return compare_versions(runtime, paths, inputs, usable_threads(threads)).times_s
