"""Where the time of a call of torch.compile passes, for networks of the suite `wild`.

    python benchmarks/pytorch_shares.py [NETWORK ...] [--rounds N] [--json FILE]

A process of its own for each network; in it the calls take turns.  Columns, as shares of the call
of the compiled module (medians):

    Dynamo   passes outside the backend: guards are checked, parameters are fetched, PyTorch calls
    backend  passes in the backend, beside the executable's call: parameters are compared, tensors
             become arrays and back, the second thread wakes
    kernels  the same executable with all addresses prepared, called again and again
    ONNX     the same for the executable of the exported model: what the ONNX way takes
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch
from pytorch_backends import exported, module_of

import tensorwright
from tensorwright.cli.printing import format_table
from tensorwright.integrations.pytorch.compile_backend import tensorwright_backend
from tensorwright_lab.zoo.wild import WILD

COLUMNS = ("Dynamo", "backend", "kernels", "ONNX")
CALLS = 10  # of each kind in a round


def shares(network: str, rounds: int, threads: int) -> dict[str, float]:
    """The columns of a network, and the seconds of a call."""
    torch.set_num_threads(threads)
    module, inputs = module_of(network)
    model = exported(module, inputs)
    by_onnx = tensorwright.compile(model, threads=threads)
    seen: list[Any] = []
    inside_s: list[float] = []

    def backend(graph: torch.fx.GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        part = tensorwright_backend(graph, examples, options={"threads": threads})

        def call(*arguments: Any) -> Any:
            seen[:] = [part, arguments]
            start = time.perf_counter()
            results = part(*arguments)
            inside_s.append(time.perf_counter() - start)
            return results

        return call

    with torch.inference_mode():
        call = torch.compile(module, backend=backend, dynamic=False)
        tensors = tuple(inputs.values())
        call(*tensors)
        part, arguments = seen
        names = [each.name for each in part.executable.inputs]
        given = [each.numpy() for each in arguments if any(each is one for one in tensors)]
        kernels = part.executable.bind(dict(zip(names, given, strict=True)))
        onnx_kernels = by_onnx.bind({name: each.numpy() for name, each in inputs.items()})
        inside_s.clear()
        times_s: dict[str, list[float]] = {"call": [], "kernels": [], "ONNX": []}
        for _ in range(rounds):
            add_times(times_s["call"], lambda: call(*tensors))
            add_times(times_s["kernels"], kernels.run)
            add_times(times_s["ONNX"], onnx_kernels.run)
    whole_s, kernels_s, onnx_s = (median(times_s[name]) for name in ("call", "kernels", "ONNX"))
    inside = median(inside_s)
    parts_s = (whole_s - inside, inside - kernels_s, kernels_s, onnx_s)
    return {
        "call_s": whole_s,
        **{name: each / whole_s for name, each in zip(COLUMNS, parts_s, strict=True)},
    }


def add_times(times_s: list[float], call: Callable[[], object]) -> None:
    """Time single calls."""
    for _ in range(CALLS):
        start = time.perf_counter()
        call()
        times_s.append(time.perf_counter() - start)


def main() -> None:
    """Print the table, or in a child the row of one network."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("networks", nargs="*", default=WILD, metavar="NETWORK")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--row", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.row:
        print(json.dumps(shares(asked.networks[0], asked.rounds, asked.threads)))
        return
    rows = {}
    for network in asked.networks:
        command = [sys.executable, os.fspath(Path(__file__)), network, "--row"]
        command += ["--rounds", str(asked.rounds), "--threads", str(asked.threads)]
        said = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
        rows[network] = json.loads(said.splitlines()[-1])
        print(f"{network}: {rows[network]['call_s'] * 1e3:.2f} ms", file=sys.stderr, flush=True)
        if asked.json:
            asked.json.write_text(json.dumps(rows, indent=1) + "\n")
    cells = [(name, *(f"{row[each]:.2f}" for each in COLUMNS)) for name, row in rows.items()]
    print(format_table(("network", *COLUMNS), cells))


if __name__ == "__main__":
    main()
