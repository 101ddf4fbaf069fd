"""Does taking turns measure what it claims? Each competitor's time in rotation against alone.

    python benchmarks/correctness/rotation_self_test.py [--rounds N] [--model FILE] [--ours FILE]

The competitors have thread pools that disturb each other when they are alive side by side: ONNX
Runtime's own, whose threads spin after a call, once with every core and once with one; PyTorch's
OpenMP pool, if PyTorch is installed; ours, if an executable is given. The model is the onnx
package's light SqueezeNet with seeded weights. The last column must stay within 0.95 to 1.05, on a
machine that others leave alone: the last line says how much they used of it.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from tensorwright.base import MachineError, available_cores
from tensorwright.cli.printing import print_table
from tensorwright.peers.process import Competitor, PeerProcess, Result, Timing, rotate
from tensorwright.peers.process.rotation import summarise

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"

_LEAST_S = 10e-3  # of a sample
LIMIT = 0.05
_STAT = Path("/proc/stat")

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


@dataclass(slots=True)
class ForeignLoad:
    """`share` is set when the block ends: the part of all cores that other programs used, 0 to 1.

    None where the system does not tell. Children count as ours once they have been waited for.
    """

    share: float | None = None


@contextmanager
def watch_foreign_load() -> Iterator[ForeignLoad]:
    """Measure from the start of the block to its end."""
    load = ForeignLoad()
    start, busy, own = time.monotonic(), _read_busy_s(), _read_own_s()
    yield load
    busy_after = _read_busy_s()
    if busy is not None and busy_after is not None:
        foreign_s = (busy_after - busy) - (_read_own_s() - own)
        available_s = (time.monotonic() - start) * (os.cpu_count() or 1)
        load.share = min(max(foreign_s / available_s, 0.0), 1.0)


def _read_busy_s() -> float | None:
    """Processor seconds that the whole machine has worked: all but idle and waiting for disks."""
    try:
        fields = [int(field) for field in _STAT.read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return None
    idle = sum(fields[3:5])
    return (sum(fields) - idle) / os.sysconf("SC_CLK_TCK")


def _read_own_s() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def seed_weights(model: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """Replace the constant weights of a light model by random ones of He's scale."""
    generator = np.random.default_rng(seed)
    shapes = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    kept = []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape" or node.input[0] not in shapes:
            kept.append(node)
            continue
        shape = tuple(int(extent) for extent in shapes[node.input[0]])
        scale = np.sqrt(2 / max(1, int(np.prod(shape[1:]))))
        weight = (generator.standard_normal(shape) * scale).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(weight, node.output[0]))
    del model.graph.node[:]
    model.graph.node.extend(kept)
    return model


def make_inputs(model: onnx.ModelProto, seed: int) -> dict[str, np.ndarray]:
    """Random inputs for every input that is no weight."""
    generator = np.random.default_rng(seed)
    weights = {i.name for i in model.graph.initializer}
    return {
        value.name: generator.standard_normal(
            [d.dim_value for d in value.type.tensor_type.shape.dim]
        ).astype(np.float32)
        for value in model.graph.input
        if value.name not in weights
    }


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
    parser.add_argument("--model", type=Path, default=LIGHT / "light_squeezenet.onnx")
    parser.add_argument("--ours", help="an executable of the model, to take part as well")
    options = parser.parse_args()
    cores = available_cores()
    model = seed_weights(onnx.load(options.model), seed=0)
    inputs = make_inputs(model, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.onnx"
        onnx.save(model, path)
        chosen = [(f"onnxruntime, {cores} threads", "onnxruntime", path, cores, inputs)]
        chosen.append(("onnxruntime, 1 thread", "onnxruntime", path, 1, inputs))
        if importlib.util.find_spec("torch") is not None:
            place = f"{Path(__file__).resolve()}:torch_convolution"
            chosen.append((f"torch convolution, {cores} threads", "function", place, cores, {}))
        if options.ours:
            chosen.append((f"ours, {cores} threads", "ours", options.ours, cores, inputs))
        with watch_foreign_load() as load:
            rows = self_test([lambda c=c: open_peer(*c) for c in chosen], options.rounds)
    cells = [
        (row.name, f"{row.alone_s * 1e3:.3f}", f"{row.rotation_s * 1e3:.3f}", f"{row.ratio:.3f}")
        for row in rows
    ]
    print_table(("competitor", "alone ms", "in rotation ms", "ratio"), cells)
    if load.share is not None:
        print(f"other programs used {load.share:.0%} of the machine meanwhile")
    return 0 if all(row.is_good for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
