"""Does taking turns measure what it claims? Each competitor's time in rotation against alone.

    python benchmarks/rotation_self_test.py [--rounds N] [--model FILE] [--ours FILE]

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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from tensorwright.base import available_cores
from tensorwright.peers import PeerProcess, print_table, watch_foreign_load
from tensorwright.peers.comparison.networks import self_test

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


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
