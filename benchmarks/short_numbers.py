"""Networks in short numbers beside their f32 forms and beside ONNX Runtime, in turns.

    python benchmarks/short_numbers.py int8|bf16 [NETWORK ...] [--work FOLDER] [--json FILE]
        [--threads N] [--target TARGET] [--rounds N]

`int8`: `tensorwright.quantize` calibrates each network on random inputs: codes of 8 bits between
QuantizeLinear and DequantizeLinear, weights by channel.  ONNX Runtime reads the same file.
`bf16`: the network is compiled with `precision="bf16"`.  ONNX Runtime, which has no bf16 for x86,
computes in f32.

Each contestant is a process of its own.  `error` is how far the outputs are from those of f32: the
root of the mean square of the differences, over that of the numbers.  Where the processor lacks
VNNI, sums of ONNX Runtime saturate; its `exact` error is that without saturating.  Quantised files
stay in the folder of `--work` and are not made again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import geometric_mean

import tensorwright
from tensorwright.base import CpuTarget, TensorwrightError, cpu_target
from tensorwright.cli.arguments.models import read_graph, read_proto, short_name
from tensorwright.cli.printing import print_table
from tensorwright.drivers.quantize import output_errors
from tensorwright.graph import random_inputs
from tensorwright.graph.onnx_export import save_proto
from tensorwright.peers.process import Arrays, PeerProcess, Timing, rotate
from tensorwright_lab.bench.machine import describe_machine, measure_ceiling
from tensorwright_lab.comparison import this_build

NETWORKS = (
    *("light:resnet50", "zoo:mobilenet_v2", "wild:mobilenet_v3", "light:squeezenet"),
    *("light:inception_v1", "wild:convnext_t", "wild:unet_gn", "wild:yolo_n", "wild:vit_s16"),
    *("wild:distilgpt2", "wild:whisper_tiny", "zoo:resnext50"),
)
SHORT, F32, PEER = "short", "f32", "onnxruntime"
_EXACT = {"config": {"session.x64quantprecision": "1"}}
_LIMIT_S = 90.0


@dataclass(frozen=True, slots=True)
class Row:
    """One network: milliseconds of the contestants, and errors against f32.

    ratio   of ONNX Runtime's time to ours      gain   of our time in f32 to ours in short numbers
    """

    network: str
    short_ms: float
    f32_ms: float
    peer_ms: float
    ratio: float
    gain: float
    error: float
    peer_error: float
    exact_error: float


def main() -> None:
    """Measure the networks that are asked for, and print and keep a row of each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("precision", choices=("int8", "bf16"))
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--work", type=Path, default=Path("build/short-numbers"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--target", default="native")
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    target = cpu_target(given.target)
    head = describe_machine(target, measure_ceiling(target, given.threads))
    head |= {"precision": given.precision, "build": this_build(), "rounds": given.rounds}
    rows = []
    for name in given.networks:
        start = time.monotonic()
        try:
            row = measure(name, given.precision, given.work, target, given.threads, given.rounds)
        except TensorwrightError as error:  # of a peer that refuses the file, too
            print(f"{name}: {error}", flush=True)
            continue
        rows.append(row)
        seconds = time.monotonic() - start
        print(f"{name}: {row.ratio:.2f}, {row.gain:.2f} in {seconds:.0f} s", flush=True)
        if given.json is not None:
            kept = {**head, "rows": [asdict(each) for each in rows]}
            given.json.write_text(json.dumps(kept, indent=1) + "\n")
    print_rows(rows)


def measure(
    name: str, precision: str, work: Path, target: CpuTarget, threads: int, rounds: int
) -> Row:
    """Compile a network twice, and time both beside ONNX Runtime."""
    inputs = random_inputs(read_graph(name), 1)
    stem = short_name(name).replace(":", "-")
    short = f32 = work / f"{stem}.onnx"
    save_proto(read_proto(name), f32)
    if precision == "int8":
        short = work / f"{stem}.qdq.onnx"
        if not short.exists():
            quantized = tensorwright.quantize(str(f32), samples=[inputs])
            save_proto(quantized.model, short)
    asked = "bf16" if precision == "bf16" else "f32"
    forms = {SHORT: (short, asked), F32: (f32, "f32")}
    for form, (path, words) in forms.items():
        executable = tensorwright.compile(
            str(path), target=target, threads=threads, precision=words
        )
        executable.save(work / f"{stem}.{form}.tw")
    with ExitStack() as stack:

        def start(
            kind: str, path: Path, config: Mapping[str, object]
        ) -> tuple[PeerProcess, Arrays]:
            process = stack.enter_context(PeerProcess(path.name, kind, target=target))
            process.load(str(path), threads, config)
            return process, process.check(inputs)

        ours = [start("ours", work / f"{stem}.{form}.tw", {}) for form in forms]
        theirs, exact = start(PEER, short, {}), start(PEER, short, _EXACT)
        wanted = [ours[1][1]]
        errors = [
            max(each.relative for each in output_errors(wanted, [answers]))
            for answers in (ours[0][1], theirs[1], exact[1])
        ]
        times = rotate([each[0] for each in (*ours, theirs)], rounds, limit_s=_LIMIT_S)
    short_s, f32_s, peer_s = (each.median_s for each in times if isinstance(each, Timing))
    ms = [1e3 * each for each in (short_s, f32_s, peer_s)]
    return Row(name, *ms, peer_s / short_s, f32_s / short_s, *errors)


def print_rows(rows: Sequence[Row]) -> None:
    """A table of the networks, and geometric means."""
    header = ("network", "ms", "f32 ms", "theirs ms", "ratio", "gain", "error", "theirs", "exact")
    body = [
        (
            row.network,
            *(f"{each:.2f}" for each in (row.short_ms, row.f32_ms, row.peer_ms)),
            *(f"{each:.2f}" for each in (row.ratio, row.gain)),
            *(f"{each:.1%}" for each in (row.error, row.peer_error, row.exact_error)),
        )
        for row in rows
    ]
    print_table(header, body)
    ratio, gain = (
        geometric_mean(each) for each in zip(*((r.ratio, r.gain) for r in rows), strict=True)
    )
    print(f"geometric means: {ratio:.2f} of ONNX Runtime, {gain:.2f} of f32")


if __name__ == "__main__":
    main()
