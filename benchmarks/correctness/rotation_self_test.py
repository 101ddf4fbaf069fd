"""Does taking turns measure what it claims? Each competitor's time in rotation against alone.

    python benchmarks/correctness/rotation_self_test.py [--rounds N] [--model MODEL] [--ours FILE]

The competitors have thread pools that disturb each other when they are alive side by side: ONNX
Runtime's own, whose threads spin after a call, once with every core and once with one; PyTorch's
OpenMP pool, if PyTorch is installed; ours, if an executable is given. The model is the onnx
package's light SqueezeNet with seeded weights. The last column must stay within 0.95 to 1.05, on a
machine that others leave alone: the last line says how much they used of it.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorwright.base import MachineError, available_cores
from tensorwright.cli.arguments.models import read_graph, read_proto
from tensorwright.cli.printing import print_table
from tensorwright.graph import random_inputs
from tensorwright.graph.onnx_export import save_proto
from tensorwright.machine import LoadWatch
from tensorwright.peers.process import Competitor, PeerProcess, Result, Timing, rotate
from tensorwright.peers.process.rotation import summarise

_LEAST_S = 10e-3  # of a sample
LIMIT = 0.05

Opener = Callable[[], AbstractContextManager[Competitor]]
"""Starts a competitor, loaded and with inputs bound; the end of the context ends it."""


@dataclass(frozen=True, slots=True)
class SelfTestRow:
    """One competitor: seconds per call alone and in rotation, and rotation / alone."""

    name: str
    alone_s: float
    rotation_s: float
    ratio: float

    @property
    def is_good(self) -> bool:
        """Whether the two times are within 5 % of each other."""
        return abs(self.ratio - 1) <= LIMIT


def self_test(openers: Sequence[Opener], rounds: int = 11) -> tuple[SelfTestRow, ...]:
    """Time each competitor alone, all in rotation, and each alone again.

    Alone means that no other competitor's process exists. The time alone is taken before and after,
    so that a slow drift of the machine does not look like a disturbance.
    Raises:  MachineError if a competitor fails.
    """
    before = [_time_alone(opener, rounds) for opener in openers]
    with ExitStack() as stack:
        competitors = [stack.enter_context(opener()) for opener in openers]
        together = [_expect_timing(t) for t in rotate(competitors, rounds, _LEAST_S)]
    after = [_time_alone(opener, rounds) for opener in openers]
    rows = []
    for first, timing, last in zip(before, together, after, strict=True):
        alone = summarise(timing.name, first.samples_s + last.samples_s)
        ratio = timing.median_s / alone.median_s
        rows.append(SelfTestRow(timing.name, alone.median_s, timing.median_s, ratio))
    return tuple(rows)


def _time_alone(opener: Opener, rounds: int) -> Timing:
    with opener() as competitor:
        return _expect_timing(rotate([competitor], rounds, _LEAST_S)[0])


def _expect_timing(result: Result) -> Timing:
    if isinstance(result, Timing):
        return result
    raise MachineError(
        stage="peers",
        where=f"peer {result.name}",
        reason=f"{result.kind.value}: {result.reason}",
        remedy="leave this competitor out",
    )


def torch_convolution(inputs: Mapping[str, Any], threads: int) -> Callable[[], object]:
    """A convolution in PyTorch's OpenMP pool: what the competitor "torch" runs."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(threads)
    data = torch.randn(1, 64, 56, 56).to(memory_format=torch.channels_last)
    weight = torch.randn(64, 64, 3, 3).to(memory_format=torch.channels_last)

    def work() -> object:
        with torch.inference_mode():
            return torch.nn.functional.conv2d(data, weight, padding=1)

    return work


@contextmanager
def open_peer(
    name: str, kind: str, path: str, threads: int, inputs: Mapping[str, Any]
) -> Iterator[PeerProcess]:
    """A competitor, ready to be timed."""
    with PeerProcess(name, kind) as peer:
        peer.load(path, threads)
        peer.bind(inputs)
        yield peer


def main() -> int:
    """Print the table; 1 if a competitor is disturbed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--model", default="light:squeezenet")
    parser.add_argument("--ours", help="an executable of the model, to take part as well")
    options = parser.parse_args()
    cores = available_cores()
    inputs = random_inputs(read_graph(options.model), 1)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.onnx"
        save_proto(read_proto(options.model), path)
        chosen = [(f"onnxruntime, {cores} threads", "onnxruntime", path, cores, inputs)]
        chosen.append(("onnxruntime, 1 thread", "onnxruntime", path, 1, inputs))
        if importlib.util.find_spec("torch") is not None:
            place = f"{Path(__file__).resolve()}:torch_convolution"
            chosen.append((f"torch convolution, {cores} threads", "function", place, cores, {}))
        if options.ours:
            chosen.append((f"ours, {cores} threads", "ours", options.ours, cores, inputs))
        watch = LoadWatch()
        rows = self_test([lambda c=c: open_peer(*c) for c in chosen], options.rounds)
        load = watch.load()
    cells = [
        (row.name, f"{row.alone_s * 1e3:.3f}", f"{row.rotation_s * 1e3:.3f}", f"{row.ratio:.3f}")
        for row in rows
    ]
    print_table(("competitor", "alone ms", "in rotation ms", "ratio"), cells)
    print(f"meanwhile {load}")
    return 0 if all(row.is_good for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
