"""How fast networks of any size are: compiled once, against a compilation for each size.

    python benchmarks/open_sizes.py [NETWORK ...] [--sizes 12] [--seconds 2] [--minutes 0]
                                    [--json FILE]

Each network is exported by PyTorch with open dimensions, and compiled once without tuning.  With
--minutes it is tuned for that long for all of the sizes together, and each of the executables for
one size alone for as long, too.  At each size it takes turns with an executable that was compiled
for that size alone, and with ONNX Runtime on the open file.  Each competitor is a process of its
own; only one runs at a time, in changing order, after a call that does not count.  Prints ratios
of medians, above 1 where the open executable is faster, and the times of compiling.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import geometric_mean, median

import numpy as np
import onnx

from tensorwright.peers.process import Failure, PeerProcess, rotate

_IDS = {0: "batch", 1: "sequence"}
_CACHE = {0: "batch", 2: "past"}
NETWORKS: Mapping[str, tuple[str, dict[str, dict[int, str]], dict[str, str]]] = {
    "bert": (
        "open_networks:bert_small",
        {"input_ids": _IDS, "attention_mask": _IDS},
        {"batch": "1..16", "sequence": "1..512"},
    ),
    "vit": ("vision_transformers:vit_s16", {"image": {0: "batch"}}, {"batch": "1..16"}),
    "resnet50": ("open_networks:resnet50", {"image": {0: "batch"}}, {"batch": "1..16"}),
    "llama": (
        "open_networks:llama_step",
        {"input_ids": _IDS},
        {"batch": "1..4", "sequence": "1..256", "past": "1..1024"},
    ),
    "whisper": ("speech:whisper_tiny", {"mel": {0: "batch"}}, {"batch": "1..4"}),
    "segformer": (
        "open_networks:segformer_b0",
        {"image": {2: "height", 3: "width"}},
        {"height": "32..512 by 32", "width": "32..512 by 32"},
    ),
    "log_mel": (
        "open_networks:log_mel",
        {"signal": {0: "batch", 1: "samples"}},
        {"batch": "1..4", "samples": "400..160000"},
    ),
    "graph": (
        "open_networks:graph_network",
        {"x": {0: "nodes"}, "edges": {1: "edges"}},
        {"nodes": "1..4096", "edges": "1..16384"},
    ),
}
_MOST_WORK = 600_000  # products of sizes beyond which a call takes many seconds

EXPORT = """
import io, sys, warnings, json
import torch
from tensorwright_lab.zoo.wild.export import make_example
warnings.simplefilter("ignore")
builder, axes, path = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
example = make_example(builder, 0)
example.module.eval()
axes = {name: {int(at): size for at, size in each.items()} for name, each in axes.items()}
for name in example.inputs:
    if name.startswith(("keys_", "values_")):
        axes[name] = {0: "batch", 2: "past"}
with torch.no_grad():
    torch.onnx.export(
        example.module, tuple(example.inputs.values()), path, input_names=list(example.inputs),
        opset_version=17, dynamo=False, dynamic_axes=axes,
    )
"""

COMPILE = """
import json, sys, time
import tensorwright
tensorwright.compile
path, out, sizes = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
threads, minutes, at = int(sys.argv[4]), float(sys.argv[5]), json.loads(sys.argv[6])
start = time.process_time()
if minutes:
    executable = tensorwright.tune(path, sizes=sizes, at=at, threads=threads, minutes=minutes)
else:
    executable = tensorwright.compile(path, sizes=sizes, threads=threads)
print(time.process_time() - start)
executable.save(out)
"""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", help=", ".join(NETWORKS))
    parser.add_argument("--sizes", type=int, default=12, help="sizes of each network")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each competitor and size")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--minutes", type=float, default=0.0, help="of tuning; none where 0")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    results = {}
    for name in given.networks or NETWORKS:
        with tempfile.TemporaryDirectory(prefix="tensorwright-open-") as folder:
            results[name] = _network(name, Path(folder), given)
    print(f"{'network':10} {'static':>6} {'least':>6} {'ORT':>6} {'least':>6} {'compile':>8}")
    for name, rows in results.items():
        static, peer = ([row[key] for row in rows["sizes"]] for key in ("static", "peer"))
        print(
            f"{name:10} {geometric_mean(static):6.2f} {min(static):6.2f} "
            f"{geometric_mean(peer):6.2f} {min(peer):6.2f} {rows['compile']:8.2f}"
        )
    if given.json is not None:
        given.json.write_text(json.dumps(results, indent=1) + "\n")


def _network(name: str, folder: Path, given: argparse.Namespace) -> dict[str, object]:
    builder, axes, bounds = NETWORKS[name]
    model, generator = folder / "model.onnx", np.random.default_rng(0)
    _python(EXPORT, builder, json.dumps(axes), str(model))
    any_size, threads = folder / "open.tw", str(given.threads)
    home = {"TENSORWRIGHT_HOME": str(folder / "home")}
    points, minutes = _points(bounds, given.sizes), str(given.minutes)
    how = (str(any_size), json.dumps(bounds), threads, minutes, json.dumps(points))
    open_s = float(_python(COMPILE, str(model), *how, **home))
    rows, static_s = [], []
    for values in points:
        inputs, one = _inputs(model, values, generator), folder / "static.tw"
        fixed = json.dumps({size: str(value) for size, value in values.items()})
        home["TENSORWRIGHT_HOME"] = str(folder / f"home_{len(rows)}")
        how = (str(one), fixed, threads, minutes, "null")
        static_s.append(float(_python(COMPILE, str(model), *how, **home)))
        paths = {"open": any_size, "static": one, "onnxruntime": model}
        times = _turns(paths, inputs, given.seconds, given.threads)
        row = {
            "static": times["static"] / times["open"],
            "peer": times["onnxruntime"] / times["open"],
        }
        rows.append({"at": values, **row})
        at = ", ".join(f"{size}={value}" for size, value in values.items())
        print(f"{name} {at}: {row['static']:.2f} of static, {row['peer']:.2f} of ONNX Runtime")
        sys.stdout.flush()
    return {"sizes": rows, "compile": open_s / median(static_s)}


def _points(bounds: Mapping[str, str], count: int) -> list[dict[str, int]]:
    """Sizes inside the bounds, on a logarithmic scale, the least of all first."""
    generator, limits = np.random.default_rng(1), {}
    for name, text in bounds.items():
        span, _, divisor = text.partition(" by ")
        least, most = map(int, span.split(".."))
        limits[name] = (least, most, int(divisor or 1))
    points = [{name: least for name, (least, _, _) in limits.items()}]
    tries = 0
    while len(points) < count and tries < 2000:
        tries += 1
        point = {}
        for name, (least, most, step) in limits.items():
            drawn = math.exp(generator.uniform(math.log(least), math.log(most)))
            point[name] = max(least, round(drawn / step) * step)
        if point not in points and math.prod(point.values()) <= _MOST_WORK:
            points.append(point)
    return points


def _inputs(
    model: Path, values: Mapping[str, int], generator: np.random.Generator
) -> dict[str, np.ndarray]:
    arrays = {}
    for info in onnx.load(model, load_external_data=False).graph.input:
        dims = info.type.tensor_type.shape.dim
        shape = [dim.dim_value or values[dim.dim_param] for dim in dims]
        if info.type.tensor_type.elem_type == onnx.TensorProto.INT64:
            most = values.get("nodes", 0)  # numbers of nodes, else of words
            ones = np.ones(shape, np.int64)
            arrays[info.name] = generator.integers(0, most, shape) if most else ones
        else:
            arrays[info.name] = generator.standard_normal(shape).astype(np.float32)
    return arrays


def _turns(
    paths: Mapping[str, Path], inputs: Mapping[str, np.ndarray], seconds: float, threads: int
) -> dict[str, float]:
    """The median of each competitor, in a process of its own; they take turns."""
    with ExitStack() as stack:
        processes = []
        for name, path in paths.items():
            kind = "ours" if path.suffix == ".tw" else name
            process = stack.enter_context(PeerProcess(name, kind))
            process.load(str(path), threads)
            process.check(inputs)
            processes.append(process)
        times = rotate(processes, limit_s=seconds * len(processes))
    for each in times:
        if isinstance(each, Failure):
            raise SystemExit(f"{each.name}: {each.reason}")
    return {name: each.median_s for name, each in zip(paths, times, strict=True)}


def _python(text: str, *arguments: str, **variables: str) -> str:
    """What a fresh process prints."""
    command = [sys.executable, "-c", text, *arguments]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, **variables}
    )
    return done.stdout


if __name__ == "__main__":
    main()
