"""How fast a decoder with a cache gives tokens, by position, against ONNX Runtime on the same file.

    python benchmarks/decoding.py [NAME ...] [--weights f32,int8,int4] [--json FILE]

Models have the sizes of published ones, and random weights. PyTorch exports them, `quantize` packs
their weights (MatMulNBits; rows are rounded, accuracy level 4, on both sides). Each side is a
process of its own; they take turns of some steps, each step one token more. The first token after a
prompt of 512 is a row of its own. Prints medians: tokens a second, the ratio (above 1: faster than
ONNX Runtime), and the share of the measured bandwidth at which weights and cache are read.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import IO, Any

import numpy as np
import onnx
import torch

import tensorwright
from tensorwright.base import available_cores, cpu_target
from tensorwright.runtime.measuring.peak import measure_bandwidth
from tensorwright_lab.zoo.wild.open_networks import llama_step

POSITIONS = (32, 512, 2048)
PROMPT = 512
WEIGHTS = ("f32", "int8", "int4")
CHILD = """
import json, sys, time
import numpy as np
kind, path, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
if kind == "ours":
    import tensorwright
    started = time.perf_counter()
    decoder = tensorwright.load(path, threads=threads)
    specs = {spec.name: spec.shape for spec in decoder.inputs}
    session = decoder.session()
    def begin(state): session.reset(state or None)
    def step(ids): return session.run({"input_ids": ids})["logits"]
else:
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    started = time.perf_counter()
    decoder = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    specs = {each.name: each.shape for each in decoder.get_inputs()}
    names = [each.name for each in decoder.get_outputs()]
    state = {}
    def begin(given):
        state.clear()
        state.update(given or empty())
    def step(ids):
        results = dict(zip(names, decoder.run(None, {"input_ids": ids, **state})))
        for name in state:
            state[name] = results["present" + name.removeprefix("past_key_values")]
        return results["logits"]
loaded_s = time.perf_counter() - started
def empty(length=0):
    shapes = {n: (1, shape[1], length, shape[3]) for n, shape in specs.items() if n != "input_ids"}
    draw = np.random.default_rng(0)
    return {n: draw.standard_normal(shape).astype(np.float32) for n, shape in shapes.items()}
print(json.dumps(loaded_s), flush=True)
for line in sys.stdin:
    position, length, steps = json.loads(line)
    begin(empty(position) if position else None)
    seconds, token = [], np.full((1, length), 5)
    for number in range(steps):
        start = time.perf_counter()
        logits = step(token)
        seconds.append(time.perf_counter() - start)
        token = np.array([[int(logits[0, -1].argmax())]])
        if length > 1:
            begin(None)
            token = np.full((1, length), 5 + number)
    print(json.dumps(seconds), flush=True)
"""


@dataclass(frozen=True, slots=True)
class Model:
    """A decoder: words, width, layers, heads, heads of keys."""

    words: int
    width: int
    depth: int
    heads: int
    groups: int


MODELS = {
    "small": Model(8192, 576, 6, 9, 3),
    "smollm2_135m": Model(49152, 576, 30, 9, 3),
    "qwen2_0.5b": Model(151936, 896, 24, 14, 2),
}


def export(model: Model, path: Path) -> None:
    """Write the model with open batch, sequence and past, under the names of transformers."""
    torch.manual_seed(0)
    example = llama_step(model.words, model.width, model.depth, model.heads, model.groups)
    ids, *caches = example.inputs
    names = [ids]
    for each in caches:
        kind, layer = each.split("_")
        names.append(f"past_key_values.{layer}.{'key' if kind == 'keys' else 'value'}")
    made = ["logits", *(each.replace("past_key_values", "present") for each in names[1:])]
    axes = {ids: {0: "batch", 1: "sequence"}} | {n: {0: "batch", 2: "past"} for n in names[1:]}
    torch.onnx.export(
        example.module.eval(),
        tuple(example.inputs.values()),
        str(path),
        input_names=names,
        output_names=made,
        dynamic_axes=axes,
        dynamo=False,
    )


def prepared(model: Model, weights: str, folder: Path, threads: int) -> tuple[dict[str, Path], int]:
    """The files of both sides, and the bytes that a step reads of weights."""
    theirs, ours = folder / "model.onnx", folder / "model.tw"
    if not theirs.exists():
        export(model, theirs)
    if weights != "f32":
        source, theirs = theirs, folder / f"{weights}.onnx"
        samples = [sample(model)]
        made = tensorwright.quantize(
            str(source), weights=weights, activations="int8", samples=samples
        )
        onnx.save(made.model, theirs)
    executable = tensorwright.compile(str(theirs), threads=threads)
    executable.save(ours)
    table = model.words * model.width * 4  # of embeddings: a step reads one row
    return {"ours": ours, "onnxruntime": theirs}, executable.constant_bytes - table


def sample(model: Model) -> dict[str, Any]:
    """Inputs by which errors of quantised weights are measured."""
    shape = (1, model.groups, 2, model.width // model.heads)
    caches = {
        f"past_key_values.{layer}.{part}": np.zeros(shape, np.float32)
        for layer in range(model.depth)
        for part in ("key", "value")
    }
    return {"input_ids": np.array([[5, 17]]), **caches}


class Side:
    """A process with a loaded decoder."""

    def __init__(self, kind: str, path: Path, threads: int) -> None:
        command = [sys.executable, "-c", CHILD, kind, str(path), str(threads)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.loaded_s = json.loads(self._line())

    def steps(self, position: int, length: int, count: int) -> list[float]:
        """Seconds of some steps."""
        pipe: IO[str] | None = self._process.stdin
        assert pipe is not None, "it was asked for"
        pipe.write(json.dumps([position, length, count]) + "\n")
        pipe.flush()
        seconds: list[float] = json.loads(self._line())
        return seconds

    def _line(self) -> str:
        assert self._process.stdout is not None, "it was asked for"
        return self._process.stdout.readline()

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None, "it was asked for"
        self._process.stdin.close()
        self._process.wait()


def measure(sides: Sequence[Side], position: int, length: int, given: Any) -> list[float]:
    """The median seconds of a step of each side, in turns; the first ones warm up."""
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(given.rounds):
        for mine, side in zip(times, sides, strict=True):
            mine += side.steps(position, length, given.steps)[given.steps // 4 :]
    return [median(each) for each in times]


def main() -> None:
    """Print a row for each model, kind of weights and position, and keep them if asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", default=["small", "smollm2_135m"])
    parser.add_argument("--weights", default=",".join(WEIGHTS))
    parser.add_argument("--threads", type=int, default=available_cores())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    bandwidth = measure_bandwidth(cpu_target("native"), given.threads)
    print(f"{given.threads} threads, {bandwidth / 1e9:.1f} GB/s from memory")
    print(f"{'model':14} {'weights':7} {'position':>8} {'tokens/s':>9} {'ratio':>6} share")
    rows = []
    for name in given.names:
        model = MODELS[name]
        for weights in given.weights.split(","):
            with tempfile.TemporaryDirectory(prefix="tensorwright-decoding-") as folder:
                paths, read = prepared(model, weights, Path(folder), given.threads)
                sides = [Side(kind, path, given.threads) for kind, path in paths.items()]
                for position in (0, *POSITIONS):
                    length = 1 if position else PROMPT
                    ours, theirs = measure(sides, position, length, given)
                    cache = 8 * model.depth * model.groups * position * model.width // model.heads
                    share = (read + cache) / ours / bandwidth if position else None
                    row = {
                        "model": name,
                        "weights": weights,
                        "position": position,
                        "prompt": length,
                        "tokens_per_s": round(length / ours, 1),
                        "ratio": round(theirs / ours, 2),
                        "share_of_bandwidth": share and round(share, 2),
                    }
                    rows.append(row)
                    what = position or f"first/{length}"
                    print(
                        f"{name:14} {weights:7} {what!s:>8} {row['tokens_per_s']:9} "
                        f"{row['ratio']:6} {row['share_of_bandwidth'] or ''}",
                        flush=True,
                    )
                for side in sides:
                    side.close()
    if given.json is not None:
        whole = {"threads": given.threads, "memory_gb_per_s": round(bandwidth / 1e9, 1)}
        given.json.write_text(json.dumps({**whole, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
