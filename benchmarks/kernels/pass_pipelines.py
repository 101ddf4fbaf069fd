"""Compare LLVM pass pipelines on two direct convolutions of `hand_schedules.py`.

Prints, for each pipeline, the time to object code and the speed of the code: the evidence for the
choice in machine_code/compilation.py. Run alone on the machine:

    python benchmarks/kernels/pass_pipelines.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import llvmlite.binding as llvm
from hand_schedules import CASES, Case, LoadedCase, request_of

from tensorwright.artifacts import emit_source, load_backend, loop_program
from tensorwright.base import CpuTarget, cpu_target
from tensorwright.machine_code.compilation import create_machine
from tensorwright.schedule import parse_trace

BUILDS = 5
RUNS = 25


def text_of(case: Case, target: CpuTarget) -> str:
    """What the emitter writes for a case."""
    trace = case.trace(target)
    program = loop_program(
        request_of(case.output(target), trace, target), parse_trace(trace), target
    )
    return emit_source(program, target, load_backend("llvm")).text


def standard(level: int, is_everything: bool = False, is_function: bool = False) -> Callable:
    """One of LLVM's own pipelines; `is_everything` with its vectorisers and unroller."""

    def run(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
        options = llvm.create_pipeline_tuning_options(speed_level=level)
        options.loop_vectorization = options.slp_vectorization = is_everything
        options.loop_unrolling = options.loop_interleaving = is_everything
        builder = llvm.create_pass_builder(machine, options)
        if not is_function:
            builder.getModulePassManager().run(module, builder)
            return
        passes = builder.getFunctionPassManager()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)

    return run


def chosen(*names: str) -> Callable:
    """A list of passes by name."""

    def run(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
        options = llvm.create_pipeline_tuning_options(speed_level=1)
        builder = llvm.create_pass_builder(machine, options)
        passes = llvm.create_new_module_pass_manager()
        for name in names:
            getattr(passes, f"add_{name}_pass")()
        passes.run(module, builder)

    return run


PIPELINES = {
    "O3 with vectorisers": standard(3, is_everything=True),
    "O3": standard(3),
    "O2": standard(2),
    "O1": standard(1),
    "function simplification O2": standard(2, is_function=True),
    "function simplification O1": standard(1, is_function=True),
    "sroa new_gvn instcombine": chosen("sroa", "new_gvn", "instruction_combine"),
    "sroa instcombine simplifycfg": chosen("sroa", "instruction_combine", "simplify_cfg"),
    "sroa simplifycfg": chosen("sroa", "simplify_cfg"),
    "sroa": chosen("sroa"),
    "no pass": chosen(),
}


def build(text: str, pipeline: Callable, machine: llvm.TargetMachine) -> tuple[float, bytes]:
    """Seconds of the fastest build, and the object code."""
    times = []
    for _ in range(BUILDS):
        start = time.perf_counter()
        module = llvm.parse_assembly(text, context=llvm.create_context())
        pipeline(module, machine)
        code = machine.emit_object(module)
        times.append(time.perf_counter() - start)
    return min(times), code


def measure(case: Case, target: CpuTarget) -> None:
    """Print one table."""
    text, machine = text_of(case, target), create_machine(target)
    built = {name: build(text, pipeline, machine) for name, pipeline in PIPELINES.items()}
    loaded = {name: LoadedCase(case, target, code) for name, (_, code) in built.items()}
    times: dict[str, list[float]] = {name: [] for name in PIPELINES}
    for _ in range(RUNS):  # taking turns, so that a slow moment hits all alike
        for name, kernel in loaded.items():
            start = time.perf_counter()
            kernel.call()
            times[name].append(time.perf_counter() - start)
    reference_s = built["O3 with vectorisers"][0]
    print(f"{case.name}\n{'pipeline':40s} build ms  relative  GFLOP/s median  best")
    for name, samples in times.items():
        build_s = built[name][0]
        rates = [
            case.flops / seconds / 1e9 for seconds in (statistics.median(samples), min(samples))
        ]
        ratio = build_s / reference_s
        print(f"{name:40s} {1e3 * build_s:8.1f} {ratio:9.2f} {rates[0]:15.0f} {rates[1]:5.0f}")


def main() -> None:
    target = cpu_target("native")
    for case in CASES:
        if case.name.startswith("conv "):
            measure(case, target)


if __name__ == "__main__":
    main()
