"""What NVRTC makes of whole networks: seconds, registers, and what the machine code does in loops.

No card is needed.  Each kernel of a network, with the schedule that an untuned network has, is
compiled for each architecture by two processes, and its machine code is read.  A product of
1024x1024x1024 and C12, the last convolution of ResNet-18, come with the schedules by rule and with
those by hand.

    python benchmarks/device/compiled_code.py [--networks light:squeezenet zoo:nasrnn ...]
        [--architectures sm_80 ...] [--json FILE]

`--json` keeps what the file has of other networks and architectures.

kernels   different ones; functions are the launches of all of them
build/s   kernels a second by two processes: lowering, text and NVRTC; load is that of the machine
alone/s   the same by the seconds of processors: what two cores do that nothing else uses
nvrtc     the part of these seconds that NVRTC takes
regs      the most registers of a thread
spills    functions that spill registers; stack: those with arrays that are in none
local     loads and stores of local memory in loops
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

from tensorwright.artifacts import backend_of, loop_program
from tensorwright.artifacts.cached_build import opaque_programs
from tensorwright.base import GpuTarget, parse_target
from tensorwright.codegen.cuda import Resources, require_nvrtc
from tensorwright.graph import Graph, program
from tensorwright.loop import LoopProgram, run_target_passes
from tensorwright.pipeline import prepare
from tensorwright.records import MemoryStore, Setting
from tensorwright.schedule import state_of
from tensorwright.tuning.selection import Chooser
from tensorwright.tuning.space import default_trace
from tensorwright_lab.cards import Function, disassemble, functions_of
from tensorwright_lab.cards.kernels import CardKernel, convolution, product, winograd
from tensorwright_lab.suites import read_network
from tensorwright_lab.zoo.architectures.bert import BertShape, bert_base

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_90a")
NETWORKS = (
    *("light:squeezenet", "light:resnet50", "zoo:mobilenet_v2", "zoo:bert_base"),
    *("wild:vit_s16", "zoo:nasrnn"),
)
BERT_LAYERS = 2
PROCESSES = 2


@dataclass(frozen=True)
class NetworkRow:
    """The kernels of a network on an architecture."""

    network: str
    architecture: str
    kernels: int
    functions: int
    build_s: float
    kernels_a_second: float
    processor_s: float
    nvrtc_s: float
    load: float
    most_registers: int
    spilling_functions: int
    functions_with_stack: int
    local_in_loops: int


@dataclass(frozen=True)
class LoopRow:
    """The main loop of a kernel: instructions, and the share of multiply-adds."""

    kernel: str
    schedule: str
    architecture: str
    registers: int
    instructions: int
    multiply_adds: int
    share: float
    local_in_loops: int


@dataclass(frozen=True)
class Built:
    """The code of a kernel, what its functions take, and seconds of a processor for it.

    nvrtc_s   those of the compiler
    """

    code: bytes
    resources: tuple[Resources, ...]
    processor_s: float
    nvrtc_s: float


_makers: list[Callable[[], LoopProgram]] = []
"""What makes the programs, for the processes that are forked."""


def build(number: int, target: GpuTarget) -> Built:
    """Lower a program, write its text and compile it."""
    nvrtc, start = require_nvrtc(), time.process_time()
    source = backend_of(target).emit(_makers[number](), target)
    written = time.process_time()
    code = nvrtc.code_and_resources(source.text, target.arch, source.signature.symbol)
    end = time.process_time()
    return Built(*code, end - start, end - written)


def read(built: Built) -> list[Function]:
    return functions_of(disassemble(built.code))


def network(name: str) -> Graph:
    """A network by its name; of BERT two of its layers, which are alike."""
    if name == "zoo:bert_base":
        return bert_base(shape=BertShape(layers=BERT_LAYERS))
    return read_network(*name.split(":"))


def makers_of(graph: Graph, target: GpuTarget) -> Iterator[Callable[[], LoopProgram]]:
    """What makes the program of each kernel of a network."""
    parts = prepare(graph, target)
    for each in Chooser(Setting(target, 1), MemoryStore(), is_cold=True).of_network(parts):
        yield lambda each=each: loop_program(each.workload, each.schedule, target)
    for opaque in opaque_programs(parts, target.kind).values():
        yield lambda opaque=opaque: run_target_passes(opaque, target)


def measure_network(name: str, graph: Graph, target: GpuTarget) -> NetworkRow:
    _makers[:] = makers_of(graph, target)
    load, *_ = os.getloadavg()
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("fork")) as pool:
        start = time.perf_counter()
        built = list(pool.map(build, range(len(_makers)), [target] * len(_makers)))
        build_s = time.perf_counter() - start
        functions = [each for part in pool.map(read, built) for each in part]
    resources = [each for part in built for each in part.resources]
    return NetworkRow(
        network=name,
        architecture=target.arch,
        kernels=len(built),
        functions=len(functions),
        build_s=round(build_s, 2),
        kernels_a_second=round(len(built) / build_s, 1),
        processor_s=round(sum(each.processor_s for each in built), 2),
        nvrtc_s=round(sum(each.nvrtc_s for each in built), 2),
        load=round(load, 1),
        most_registers=max(each.registers for each in resources),
        spilling_functions=sum(each.spilled_bytes > 0 for each in resources),
        functions_with_stack=sum(each.stack_bytes > 0 for each in resources),
        local_in_loops=sum(loop.local for each in functions for loop in each.loops),
    )


def loops_of_kernels(target: GpuTarget) -> Iterator[LoopRow]:
    """A product and C12, by rule and by hand."""
    cases = (
        ("matmul 1024", product(1024, 1024, 1024)),
        ("C12", convolution(512, 512, 7)),
        ("C12 Winograd", winograd(512, 512, 7)),
    )
    for name, kernel in cases:
        yield loop_row(name, "by hand", kernel.program, target)
        if kernel.name != "winograd":
            yield loop_row(name, "by rule", by_rule(kernel, target), target)


def by_rule(kernel: CardKernel, target: GpuTarget) -> LoopProgram:
    workload = program([kernel.output])
    return loop_program(workload, default_trace(state_of(workload), target), target)


def loop_row(name: str, schedule: str, program: LoopProgram, target: GpuTarget) -> LoopRow:
    _makers[:] = [lambda: program]
    built = build(0, target)
    functions = read(built)
    main = max(
        (each for each in functions if each.main_loop is not None),
        key=lambda each: each.main_loop.multiply_adds if each.main_loop else 0,
    )
    loop = main.main_loop
    assert loop is not None
    return LoopRow(
        kernel=name,
        schedule=schedule,
        architecture=target.arch,
        registers=next(r.registers for r in built.resources if r.function == main.name),
        instructions=loop.size,
        multiply_adds=loop.multiply_adds,
        share=round(loop.share, 3),
        local_in_loops=sum(each.local for f in functions for each in f.loops),
    )


def print_networks(rows: list[NetworkRow]) -> None:
    print(
        f"{'network':20} {'arch':7} {'kernels':>7} {'functions':>9} {'s':>5} {'build/s':>7} "
        f"{'load':>4} {'alone/s':>7} {'nvrtc':>5} {'regs':>4} {'spills':>6} {'stack':>5} "
        f"{'local':>5}"
    )
    for each in rows:
        print(
            f"{each.network:20} {each.architecture:7} {each.kernels:7} {each.functions:9} "
            f"{each.build_s:5.1f} {each.kernels_a_second:7.1f} {each.load:4.1f} "
            f"{PROCESSES * each.kernels / each.processor_s:7.1f} "
            f"{each.nvrtc_s / each.processor_s:5.0%} {each.most_registers:4} "
            f"{each.spilling_functions:6} {each.functions_with_stack:5} {each.local_in_loops:5}"
        )


def print_loops(rows: list[LoopRow]) -> None:
    print(
        f"{'kernel':14} {'schedule':9} {'arch':7} {'regs':>4} {'loop':>5} {'FFMA':>5} {'share':>6} "
        f"{'local':>5}"
    )
    for each in rows:
        print(
            f"{each.kernel:14} {each.schedule:9} {each.architecture:7} {each.registers:4} "
            f"{each.instructions:5} {each.multiply_adds:5} {each.share:6.1%} "
            f"{each.local_in_loops:5}"
        )


@dataclass
class Results:
    """The rows so far, with those that a file has of other networks and architectures; mutable."""

    path: Path | None
    networks: dict[tuple[str, str], NetworkRow]
    loops: dict[tuple[str, str, str], LoopRow]

    @classmethod
    def read(cls, path: Path | None) -> Results:
        """What a file has; nothing where there is none."""
        kept = json.loads(path.read_text()) if path and path.exists() else {}
        results = cls(path, {}, {})
        for row in kept.get("networks", ()):
            results.add(NetworkRow(**row))
        for row in kept.get("loops", ()):
            results.add(LoopRow(**row))
        return results

    def add(self, row: NetworkRow | LoopRow) -> None:
        """Take a row, in the place of an older one."""
        if isinstance(row, NetworkRow):
            self.networks[row.network, row.architecture] = row
        else:
            self.loops[row.kernel, row.schedule, row.architecture] = row

    def write(self) -> None:
        """Keep all in the file."""
        if self.path is not None:
            contents = {
                "measured": datetime.now(UTC).date().isoformat(),
                "nvrtc": ".".join(map(str, require_nvrtc().version)),
                "networks": [asdict(each) for each in self.networks.values()],
                "loops": [asdict(each) for each in self.loops.values()],
            }
            self.path.write_text(json.dumps(contents, indent=1) + "\n")


def main() -> None:
    """Measure what is asked for, and print and keep all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="*", default=NETWORKS, choices=NETWORKS)
    parser.add_argument("--architectures", nargs="+", default=ARCHITECTURES)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    results = Results.read(given.json)
    targets = [gpu_target(f"cuda:{each}") for each in given.architectures]
    for target in targets:
        for row in loops_of_kernels(target):
            results.add(row)
    for name in given.networks:
        graph = network(name)
        for target in targets:
            results.add(measure_network(name, graph, target))
            results.write()
    results.write()
    print_networks(list(results.networks.values()))
    print_loops(list(results.loops.values()))


def gpu_target(name: str) -> GpuTarget:
    target = parse_target(name)
    assert isinstance(target, GpuTarget)
    return target


if __name__ == "__main__":
    main()
