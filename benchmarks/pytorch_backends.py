"""The networks of the suite `wild` as PyTorch modules, through several compilers, in turns.

    python benchmarks/pytorch_backends.py prepare WORK [NETWORK ...] [--only CONTESTANT ...]
    python benchmarks/pytorch_backends.py measure WORK [NETWORK ...] [--json FILE] [--rounds N]
    python benchmarks/pytorch_backends.py report [--json FILE]

`prepare` compiles each network with each contestant, in a process of its own with empty caches,
and keeps in the folder WORK how long the first result took, the caches and the results.  `measure`
starts those that are prepared from their caches, compares their results with those of eager
PyTorch, and times them in turns, a process each.  `report` prints the table.  Each goes on where it
stopped: what WORK or the file has is not done again.

The module is given as it is written, in evaluation mode, 32-bit, under `inference_mode`, with its
inputs as they come.  The seconds to the first result begin after PyTorch was imported and the
module was made; what they hold is tracing or exporting, compiling and one call.  Those of the
processor count all processes of the compiler, and hold where others use the machine, too.

`--target x86-64-avx2` holds all contestants to vectors that are narrower than this machine's; name
another folder and another file then.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
import onnx
import torch
import torch._inductor.config as inductor_settings
from torch.utils import _pytree as pytree

import tensorwright
from tensorwright.base import TensorwrightError, cpu_target
from tensorwright.peers.process import PeerProcess, Timing, rotate
from tensorwright.peers.process.process import holding_variables
from tensorwright_lab.comparison.agreement import apart
from tensorwright_lab.zoo.wild import WILD
from tensorwright_lab.zoo.wild.export import Example, draw_inputs, export_onnx, make_example
from tensorwright_lab.zoo.wild.suite import BUILDERS

__version__ = str(torch.__version__)
RESULTS = Path(__file__).parent / "results" / "pytorch-backends.json"
EAGER, OURS, ONNX, INDUCTOR, TUNED = CONTESTANTS = (
    "pytorch",
    "tensorwright",
    "onnx",
    "inductor",
    "inductor-max",
)
MOST_TURNS_S = 15.0


@dataclass(frozen=True, slots=True)
class First:
    """The first result of a contestant, with empty caches.

    time_s     until it was there         processor_s  of all processes until the end
    fallbacks  what PyTorch ran, and why
    """

    time_s: float
    processor_s: float
    fallbacks: dict[str, str]


@dataclass(frozen=True, slots=True)
class Entry:
    """A contestant in the row of a network.

    time_s    the median of the samples of all turns     fastest_s  the least of them: what others
    spread    of the samples, as `Timing` has it                    on the machine disturb less
    """

    first: First
    error: float | None = None
    time_s: float | None = None
    spread: float | None = None
    fastest_s: float | None = None
    failure: str = ""


def module_of(network: str) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """A network with seeded weights, and inputs by name."""
    example = make_example(f"{BUILDERS[network]}:{network}", 0)
    return example.module.eval(), draw_inputs(example, 1)


def use_caches(work: Path) -> None:
    """Let the compilers of this process keep what they make in a folder."""
    os.environ["TENSORWRIGHT_HOME"] = os.fspath(work / "home")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.fspath(work / "inductor")


def compiled(contestant: str, module: torch.nn.Module, chosen: dict[str, Any]) -> Any:
    """The module as a contestant calls it; `chosen` are our options."""
    match contestant:
        case "pytorch":
            return module
        case "tensorwright":
            return torch.compile(module, backend="tensorwright", dynamic=False, options=chosen)
        case "inductor":
            return torch.compile(module, dynamic=False)
        case "inductor-max":
            inductor_settings.freezing = True
            return torch.compile(module, dynamic=False, mode="max-autotune")
    raise ValueError(f"no contestant {contestant}")


def make_call(
    _: object, threads: int, network: str, contestant: str, work: str, target: str | None
) -> Callable[[], list[torch.Tensor]]:
    """A factory for the competitor of kind "function": a network as a contestant calls it."""
    use_caches(Path(work))
    torch.set_num_threads(threads)
    module, inputs = module_of(network)
    call = compiled(contestant, module, {"threads": threads, "target": target})
    tensors = tuple(inputs.values())
    in_inference = torch.inference_mode()

    def run() -> list[torch.Tensor]:
        with in_inference:
            results = call(*tensors)
        if isinstance(results, torch.Tensor):
            return [results]
        return [each for each in pytree.tree_leaves(results) if each is not None]

    run()
    return run


def first_result(
    network: str, contestant: str, threads: int, work: Path, target: str | None
) -> First:
    """Compile a network and call it once, in this process; the results are kept in a folder."""
    use_caches(work)
    torch.set_num_threads(threads)
    module, inputs = module_of(network)
    processor_s = time.process_time()
    start = time.perf_counter()
    executable = None
    if contestant == ONNX:
        model = exported(module, inputs)
        executable = tensorwright.compile(model, threads=threads, target=target)
        arrays = {name: each.numpy() for name, each in inputs.items()}
        results = list(executable.run(arrays).values())
    else:
        with torch.inference_mode():
            call = compiled(contestant, module, {"threads": threads, "target": target})
            leaves = pytree.tree_leaves(call(*inputs.values()))
        results = [each.numpy() for each in leaves if each is not None]
    time_s = time.perf_counter() - start
    if executable is not None:
        executable.save(work / "model.tw")
    np.savez(work / "results.npz", *results)
    np.savez(work / "inputs.npz", **{name: each.numpy() for name, each in inputs.items()})
    return First(time_s, -processor_s, fallbacks_of(contestant))


def exported(module: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> onnx.ModelProto:
    """The module as users of the ONNX way have it."""
    model: onnx.ModelProto = export_onnx(Example(module, inputs))
    return model


def fallbacks_of(contestant: str) -> dict[str, str]:
    """What PyTorch runs in our backend."""
    if contestant != OURS:
        return {}
    backend = sys.modules["tensorwright.integrations.pytorch.compile_backend"]
    noted: dict[str, str] = backend.fallbacks()
    return noted


def prepare(network: str, contestant: str, threads: int, work: Path, target: str | None) -> None:
    """Run `first_result` in a process of its own, where its folder has none."""
    folder = work / network / contestant
    kept = folder / "first.json"
    if kept.exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [sys.executable, __file__, "first", folder, network, "--only", contestant]
    command += ["--threads", str(threads), *(("--target", target) if target else ())]
    held = {**os.environ, **holding_variables(cpu_target(target or "native"))}
    with (folder / "log").open("w") as log:
        child = subprocess.Popen(
            list(map(str, command)), stdout=subprocess.PIPE, stderr=log, env=held
        )
        said = b"" if child.stdout is None else child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{network}, {contestant}: status {child.returncode}; see {folder}/log")
    first = json.loads(said.splitlines()[-1])
    first["processor_s"] += usage.ru_utime + usage.ru_stime
    kept.write_text(json.dumps(first, indent=1) + "\n")
    times = f"{first['time_s']:8.1f} s, processor {first['processor_s']:8.1f} s"
    print(f"{network:16}{contestant:16}{times}  {first['fallbacks'] or ''}", flush=True)


def measure(
    network: str,
    contestants: Sequence[str],
    threads: int,
    work: Path,
    rounds: int,
    target: str | None,
) -> dict[str, Entry]:
    """Compare the results of the contestants that are prepared, and time them in turns."""
    folder = work / network
    names = [each for each in contestants if (folder / each / "first.json").exists()]
    wanted = arrays_of(folder / EAGER / "results.npz")
    entries: dict[str, Entry] = {}
    racing: list[PeerProcess] = []
    with ExitStack() as stack:
        for name in names:
            first = First(**json.loads((folder / name / "first.json").read_text()))
            kind = "ours" if name == ONNX else "function"
            held = cpu_target(target or "native")
            process = stack.enter_context(PeerProcess(name, kind, target=held))
            try:
                results = started(process, network, threads, folder / name, target)
            except TensorwrightError as error:
                entries[name] = Entry(first, failure=str(error))
                continue
            entries[name] = Entry(first, error=apart(results, wanted).relative)
            racing.append(process)
        for result in rotate(racing, rounds, limit_s=MOST_TURNS_S):
            entry = entries[result.name]
            if isinstance(result, Timing):
                times = (result.median_s, result.spread, min(result.samples_s))
                entries[result.name] = Entry(entry.first, entry.error, *times)
            else:
                entries[result.name] = Entry(entry.first, entry.error, failure=result.reason)
    return entries


def started(
    process: PeerProcess, network: str, threads: int, folder: Path, target: str | None
) -> dict[str, Any]:
    """Start a contestant from its caches, which are in `folder`: its results, by position."""
    if process.name == ONNX:
        process.load(os.fspath(folder / "model.tw"), threads)
        results = process.check(dict(np.load(folder.parent / EAGER / "inputs.npz")))
    else:
        path = f"{Path(__file__).resolve()}:{make_call.__name__}"
        told = {"network": network, "contestant": process.name, "work": os.fspath(folder)}
        process.load(path, threads, {**told, "target": target})
        results = process.check({})
    return {str(place): each for place, each in enumerate(results.values())}


def arrays_of(path: Path) -> dict[str, Any]:
    """Arrays of a file, by position."""
    with np.load(path) as arrays:
        return {str(place): arrays[name] for place, name in enumerate(arrays.files)}


def rows_of(path: Path) -> dict[str, dict[str, Any]]:
    """The rows that a file has, by network."""
    rows: dict[str, dict[str, Any]] = json.loads(path.read_text())["rows"] if path.exists() else {}
    return rows


def write(path: Path, rows: dict[str, dict[str, Any]], target: str | None) -> None:
    """Write the rows, and where they were measured."""
    head = {
        "torch": str(torch.__version__),
        "target": cpu_target(target or "native").name,
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "measured": time.strftime("%Y-%m-%d"),
    }
    path.write_text(json.dumps({**head, "rows": rows}, indent=1) + "\n")


def ratio(row: dict[str, Any], other: str, field: str) -> float | None:
    """How many times as long another contestant takes, by a field of `Entry` or of `First`."""
    entries = [row.get(each) for each in (other, OURS)]
    if None in entries:
        return None
    theirs, ours = ({**each["first"], **each}.get(field) for each in entries)
    return theirs / ours if theirs and ours else None


COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("ONNX", ONNX, "time_s"),
    ("fastest", ONNX, "fastest_s"),
    ("Inductor", INDUCTOR, "time_s"),
    ("fastest", INDUCTOR, "fastest_s"),
    ("max", TUNED, "time_s"),
    ("fastest", TUNED, "fastest_s"),
    ("first result", INDUCTOR, "processor_s"),
    ("of max", TUNED, "processor_s"),
)
TITLES = ("network", *(title for title, *_ in COLUMNS), "error", "in PyTorch", "failed")


def report(rows: dict[str, dict[str, Any]]) -> None:
    """Print the table: how many times as fast ours is as each other one, as Markdown."""
    cells = [row_of(network, row) for network, row in rows.items()]
    ratios = [
        [each for row in rows.values() if (each := ratio(row, other, field))]
        for _, other, field in COLUMNS
    ]
    summaries = (("geometric mean", geometric_mean), ("least", min), ("networks", len))
    for title, summary in summaries:
        values = (summary(each) if each else None for each in ratios)
        cells.append((title, *map(number_text, values), "", "", ""))
    print("| " + " | ".join(TITLES) + " |")
    print("|---|" + "---:|" * (len(TITLES) - 1))
    for each in cells:
        print("| " + " | ".join(each) + " |")


def row_of(network: str, row: dict[str, Any]) -> tuple[str, ...]:
    """The cells of a network."""
    ours = row[OURS]
    ratios = [number_text(ratio(row, other, field)) for _, other, field in COLUMNS]
    failed = sum(bool(each["failure"]) for each in row.values())
    in_torch = len(ours["first"]["fallbacks"])
    return (f"`{network}`", *ratios, f"{ours['error']:.0e}", str(in_torch), str(failed))


def number_text(number: float | None) -> str:
    """A cell: empty for what was not measured."""
    if number is None:
        return ""
    return str(number) if isinstance(number, int) else f"{number:.2f}"


def main() -> None:
    """Do one of the steps."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("step", choices=("prepare", "measure", "report", "first"))
    parser.add_argument("work", nargs="?", type=Path, help="a folder for caches and results")
    parser.add_argument("networks", nargs="*", default=WILD, metavar="NETWORK")
    parser.add_argument("--only", action="append", choices=CONTESTANTS)
    parser.add_argument("--json", type=Path, default=RESULTS, metavar="FILE")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--target")
    parser.add_argument("--again", action="store_true", help="measure what the file has, too")
    options = parser.parse_args()
    run_step(options, options.only or CONTESTANTS)


def run_step(options: argparse.Namespace, contestants: Sequence[str]) -> None:
    """One step, for all networks that are named."""
    rows, target = rows_of(options.json), options.target
    if options.step != "report" and options.work is None:
        raise SystemExit("name a folder for caches and results")
    match options.step:
        case "prepare":
            for network in options.networks:
                for contestant in contestants:
                    prepare(network, contestant, options.threads, options.work, target)
        case "first":
            (network,), (contestant,) = options.networks, contestants
            first = first_result(network, contestant, options.threads, options.work, target)
            print(json.dumps(asdict(first)))
        case "measure":
            for network in options.networks:
                if options.again or network not in rows:
                    entries = measure(
                        network,
                        contestants,
                        options.threads,
                        options.work,
                        options.rounds,
                        target,
                    )
                    rows[network] = {name: asdict(each) for name, each in entries.items()}
                    write(options.json, rows, target)
                    report({network: rows[network]})
        case "report":
            report(rows)


if __name__ == "__main__":
    main()
