"""What a call of torch.compile costs beside the executable: microseconds, the median of many.

    python benchmarks/pytorch_calls.py [--layers 1 10 50] [--calls 2000] [--json FILE]

The modules are chains of small linear layers, on one thread: almost nothing is computed, and a
chain of n layers has 2n parameters.  Columns:

    dynamo   the compiled module where the backend gives a tensor back: guards and PyTorch's calls
    ours     the compiled module; frozen: with the option `freeze`
    part     what Dynamo calls: parameters are compared, tensors become arrays and back
    run      `executable.run` on an array, which is inside `part`
    bound    the same call with all addresses prepared, which is the computing itself
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import fx, nn

from tensorwright.cli.printing import format_table
from tensorwright.integrations.pytorch.compile_backend import tensorwright_backend

WIDTH = 8
COLUMNS = ("dynamo", "ours", "frozen", "part", "run", "bound")


def microseconds(call: Callable[[], object], calls: int) -> float:
    """The median time of a call."""
    times_s = []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        times_s.append(time.perf_counter() - start)
    return 1e6 * median(times_s)


def row_of(layers: int, calls: int) -> dict[str, float]:
    """The times of a module of so many layers."""
    module = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(layers))).eval()
    x, result = torch.randn(4, WIDTH), torch.randn(4, WIDTH)
    seen: list[Any] = []

    def constant(*_: object) -> Callable[..., Sequence[Any]]:
        return lambda *_: (result,)

    def ours(graph: fx.GraphModule, examples: Sequence[Any], *, freeze: bool = False) -> Any:
        part = tensorwright_backend(graph, examples, options={"threads": 1, "freeze": freeze})
        seen[:] = [part, examples]
        return part

    def frozen(graph: fx.GraphModule, examples: Sequence[Any]) -> Any:
        return ours(graph, examples, freeze=True)

    def compiled(backend: Callable[..., Any]) -> float:
        torch._dynamo.reset()
        call = torch.compile(module, backend=backend, dynamic=False)
        call(x)
        return microseconds(lambda: call(x), calls)

    with torch.no_grad():
        times = {"dynamo": compiled(constant), "frozen": compiled(frozen), "ours": compiled(ours)}
        part, arguments = seen
        arguments = [x if each.shape == x.shape else each for each in arguments]
        times["part"] = microseconds(lambda: part(*arguments), calls)
    executable = part.executable
    inputs = {executable.inputs[0].name: x.numpy()}
    times["run"] = microseconds(lambda: executable.run(inputs), calls)
    times["bound"] = microseconds(executable.bind(inputs).run, calls)
    return times


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--layers", type=int, nargs="+", default=[1, 10, 50])
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = {layers: row_of(layers, options.calls) for layers in options.layers}
    cells = [
        (str(2 * layers), *(f"{row[name]:.1f}" for name in COLUMNS)) for layers, row in rows.items()
    ]
    print(format_table(("parameters", *COLUMNS), cells))
    if options.json:
        options.json.write_text(json.dumps({"unit": "us", "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
