"""Networks in short numbers beside their f32 forms, ONNX Runtime and OpenVINO, in turns.

    python benchmarks/short_numbers.py int8|bf16 [NETWORK ...] [--work FOLDER] [--json FILE]
        [--threads N] [--target TARGET] [--rounds N]

`int8`: `tensorwright.quantize` calibrates each network on random inputs: codes of 8 bits between
QuantizeLinear and DequantizeLinear, weights by channel.  The others read the same file; what is not
in codes is f32.
`bf16`: the network is compiled with `precision="bf16"`, and OpenVINO is told to infer in it.  ONNX
Runtime, which has no bf16 for x86, computes in f32.

Each contestant is a process of its own; the ratio is that of the faster of the others, and one that
refuses a file is left out.  `error` is how far the outputs are from those of f32: the root of the
mean square of the differences, over that of the numbers.  Where the processor lacks VNNI, sums of
ONNX Runtime saturate; its `exact` error is that without saturating.  Quantised files stay in the
folder of `--work` and are not made again.
"""

from __future__ import annotations

import argparse
import json
import math
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
from tensorwright.peers.process import Arrays, PeerFailed, PeerProcess, Timing, rotate
from tensorwright_lab.bench.machine import describe_machine, measure_ceiling
from tensorwright_lab.comparison import this_build

NETWORKS = (
    *("light:resnet50", "zoo:mobilenet_v2", "wild:mobilenet_v3", "light:squeezenet"),
    *("light:inception_v1", "wild:convnext_t", "wild:unet_gn", "wild:yolo_n", "wild:vit_s16"),
    *("wild:distilgpt2", "wild:whisper_tiny", "zoo:resnext50"),
)
SHORT, F32 = "short", "f32"
PEERS = ("onnxruntime", "openvino")
_EXACT = {"config": {"session.x64quantprecision": "1"}}
_LIMIT_S = 90.0


@dataclass(frozen=True, slots=True)
class Row:
    """One network: milliseconds of the contestants, and errors against f32.

    peers_ms, peer_errors   of those that take the file; `exact` is ONNX Runtime without saturating
    ratio   of the least time of a peer to ours; None without one
    gain    of our time in f32 to ours in short numbers
    """

    network: str
    short_ms: float
    f32_ms: float
    peers_ms: dict[str, float]
    ratio: float | None
    gain: float
    error: float
    peer_errors: dict[str, float]


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
        except TensorwrightError as error:
            print(f"{name}: {error}", flush=True)
            continue
        rows.append(row)
        seconds = time.monotonic() - start
        print(f"{name}: {_text(row.ratio)}, {row.gain:.2f} in {seconds:.0f} s", flush=True)
        if given.json is not None:
            kept = {**head, "rows": [asdict(each) for each in rows]}
            given.json.write_text(json.dumps(kept, indent=1) + "\n")
    print_rows(rows)


def measure(
    name: str, precision: str, work: Path, target: CpuTarget, threads: int, rounds: int
) -> Row:
    """Compile a network twice, and time both beside the others."""
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
    options: dict[str, dict[str, object]] = {kind: {} for kind in PEERS}
    options["openvino"] = {"INFERENCE_PRECISION_HINT": asked}
    with ExitStack() as stack:

        def start(
            kind: str, path: Path, config: Mapping[str, object]
        ) -> tuple[PeerProcess, Arrays]:
            process = stack.enter_context(PeerProcess(f"{kind} {path.name}", kind, target=target))
            process.load(str(path), threads, config)
            return process, process.check(inputs)

        ours = [start("ours", work / f"{stem}.{form}.tw", {}) for form in forms]
        theirs: dict[str, tuple[PeerProcess, Arrays]] = {}
        for kind, given in (*options.items(), ("exact", _EXACT)):
            try:
                theirs[kind] = start(PEERS[0] if kind == "exact" else kind, short, given)
            except PeerFailed as error:
                print(f"{name}: {kind}: {error}", flush=True)
        wanted = ours[1][1]
        errors = {kind: _error(wanted, answers) for kind, (_, answers) in theirs.items()}
        timed = {kind: process for kind, (process, _) in theirs.items() if kind in PEERS}
        results = rotate([ours[0][0], ours[1][0], *timed.values()], rounds, limit_s=_LIMIT_S)
    (short_s, f32_s), others = (
        [each.median_s if isinstance(each, Timing) else math.nan for each in part]
        for part in (results[:2], results[2:])
    )
    peers_s = {kind: each for kind, each in zip(timed, others, strict=True) if each == each}
    return Row(
        name,
        1e3 * short_s,
        1e3 * f32_s,
        {kind: 1e3 * each for kind, each in peers_s.items()},
        min(peers_s.values()) / short_s if peers_s else None,
        f32_s / short_s,
        _error(wanted, ours[0][1]),
        errors,
    )


def _error(wanted: Arrays, answers: Arrays) -> float:
    """The largest relative error of an output."""
    return max(each.relative for each in output_errors([wanted], [answers]))


def print_rows(rows: Sequence[Row]) -> None:
    """A table of the networks, and geometric means."""
    kinds = (*PEERS, "exact")
    header = ("network", "ms", "f32 ms", *PEERS, "ratio", "gain", "error", *kinds)
    body = [
        (
            row.network,
            *(f"{each:.2f}" for each in (row.short_ms, row.f32_ms)),
            *(_text(row.peers_ms.get(kind)) for kind in PEERS),
            *(_text(row.ratio), f"{row.gain:.2f}", f"{row.error:.1%}"),
            *(_text(row.peer_errors.get(kind), ".1%") for kind in kinds),
        )
        for row in rows
    ]
    print_table(header, body)
    ratios = [row.ratio for row in rows if row.ratio is not None]
    ratio, gain = (
        f"{geometric_mean(each):.2f}" if each else "-"
        for each in (ratios, [row.gain for row in rows])
    )
    print(f"geometric means: {ratio} of the faster of the others, {gain} of f32")


def _text(number: float | None, form: str = ".2f") -> str:
    """A number; blank if there is none."""
    return "" if number is None else format(number, form)


if __name__ == "__main__":
    main()
