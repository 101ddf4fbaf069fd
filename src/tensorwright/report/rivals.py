"""A network beside other runtimes: each in a separate process, all in turns.

The gain of each part of the compiler: variants with one more part each, timed in turns.

operators    a kernel for each operator, plain layouts, one thread, no search
fusion       nodes share kernels              layouts      tensors lie as kernels read them
threads      all threads                      rewriting    the rewritten graph
schedules    the schedules of the search
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from tensorwright import base
from tensorwright.graph import Graph, KernelCall, Limits, Partition, partition, run_target_passes
from tensorwright.peers.prices import PeerPrices
from tensorwright.peers.process import (
    Failure,
    PeerFailed,
    PeerProcess,
    Timing,
    find_kind,
    max_rel_error,
    rotate,
    summarise,
)
from tensorwright.pipeline import cut, finish, open_price
from tensorwright.processes import hold_turn
from tensorwright.records import MemoryStore
from tensorwright.report.numbers import LATE, Values, comparison_values, micro, short, timing
from tensorwright.runtime import Executable
from tensorwright.runtime.measuring import faster_half, samples_in_turns
from tensorwright.tuning.session import Comparison

NAMES = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}
_ALONE = "onnxruntime"
"""The runtime in which workloads run alone."""
_ROUNDS = 9
_LIMIT_S = 12.0
_TURNS = 60
_WRONG = 1e-3  # an error, relative to the largest number of an output, that makes an answer wrong

WriteModel = Callable[[Path], object]
"""Writes the model of a network as an ONNX file."""


class _Here:
    """The executable of this process as a competitor."""

    def __init__(self, executable: Executable, inputs: Mapping[str, base.Array]) -> None:
        self.name = "tensorwright"
        self._bound = executable.bind(dict(inputs))

    @contextmanager
    def turn(self) -> Iterator[None]:
        """As `Competitor.turn`; between turns it runs nothing."""
        with hold_turn():
            yield

    def time(self, number: int, repeat: int) -> tuple[float, ...]:
        """As `Competitor.time`."""
        seconds = []
        for _ in range(repeat):
            start = perf_counter()
            for _ in range(number):
                self._bound.run()
            seconds.append((perf_counter() - start) / number)
        return tuple(seconds)


def rival_values(
    executable: Executable,
    untuned: Executable | None,
    inputs: Mapping[str, base.Array],
    write_model: WriteModel | None,
) -> Values:
    """Our time and that of the untuned program, and the time of each installed runtime or the
    reason why it has none; all run in turns.

    untuned       None if it is the same program
    write_model   None if other runtimes cannot have the model
    """
    outputs = executable.run(inputs)
    rivals: list[Values] = []
    with ExitStack() as owned:
        folder = owned.enter_context(tempfile.TemporaryDirectory(prefix="tensorwright-report-"))
        path = Path(folder) / "model.onnx"
        ready: list[PeerProcess] = []
        for name in NAMES if write_model is not None else ():
            try:
                find_kind(name)
            except base.TensorwrightError:
                continue
            if write_model is not None and not path.exists():
                write_model(path)
            values: Values = {"name": NAMES[name]}
            rivals.append(values)
            try:
                process = owned.enter_context(PeerProcess(name, name))
                values["version"] = process.load(str(path), executable.threads).version
                error = max_rel_error(outputs, process.check(inputs), {})
            except PeerFailed as failed:
                values["reason"] = failed.reason
                continue
            values["error"] = short(error)
            if error <= _WRONG:
                ready.append(process)
            else:
                values["reason"] = f"its answer differs by {error:.2g} of the largest number"
        programs = [each for each in (executable, untuned) if each is not None]
        results = _in_turns(programs, ready, inputs)
    own, others = results[: len(programs)], results[len(programs) :]
    samples = [each.samples_s for each in own if isinstance(each, Timing)]
    if len(samples) < len(programs):
        return {"rivals": rivals}
    ours, before = faster_half(samples[0]), faster_half(samples[-1])
    same = untuned is None
    compared = Comparison.of_same(ours) if same else Comparison.of(before, ours)
    timed = [values for values in rivals if "reason" not in values]
    for values, result in zip(timed, others, strict=True):
        values |= _against(samples[0], result)
    return {
        "ours": timing(samples[0]),
        "untuned": comparison_values(compared),
        "rivals": rivals,
    }


def _in_turns(
    programs: Sequence[Executable], peers: Sequence[PeerProcess], inputs: Mapping[str, base.Array]
) -> Sequence[Timing | Failure]:
    """The times of our programs and of peers; without peers a turn is one run in this process."""
    if peers:
        here = [_Here(each, inputs) for each in programs]
        return rotate([*here, *peers], _ROUNDS, limit_s=_LIMIT_S)
    with hold_turn():
        taken = samples_in_turns(programs, inputs, _TURNS, _LIMIT_S / 2) or []
    return [summarise("tensorwright", each) for each in taken]


def alone_values(parts: Partition, keys: Sequence[str], threads: int, deadline: float) -> Values:
    """The time of workloads alone in one other runtime, each as a separate model.

    It is the fastest of some calls, less the time of a call of a tiny model.

    keys       of the workloads, the most important one first
    deadline   of the monotonic clock, after which no measurement begins
    Raises:  MachineError if the runtime is not installed, or fails.
    """
    calls = {each.workload.key: each for each in parts.steps if isinstance(each, KernelCall)}
    times_us: Values = {}
    with PeerPrices(_ALONE, threads) as prices:
        for key in keys:
            if key not in calls or time.monotonic() > deadline:
                continue
            with suppress(base.UnsupportedError):  # an operator that ONNX does not have
                (kernel,) = prices.kernels_of(_graph_of(parts.graph, calls[key]))
                times_us[key] = micro(kernel.seconds)
    return {"name": NAMES[_ALONE], "times_us": times_us}


def _graph_of(graph: Graph, call: KernelCall) -> Graph:
    """The operators of a kernel as a network with plain layouts."""
    made = {name for node in call.nodes for name in node.outputs}
    read = dict.fromkeys(name for node in call.nodes for name in node.inputs if name not in made)
    return Graph(
        "workload",
        tuple(name for name in read if name not in graph.constants),
        {name: graph.constants[name] for name in read if name in graph.constants},
        call.nodes,
        call.outputs,
        {name: graph.types[name] for name in (*read, *made)},
    )


def _against(ours_s: Sequence[float], result: Timing | Failure) -> Values:
    if isinstance(result, Failure):
        return {"reason": result.reason}
    compared = Comparison.of(faster_half(result.samples_s), faster_half(ours_s))
    return {
        **timing(result.samples_s),
        "ratio": short(compared.speed_up),
        "least": short(compared.least),
        "most": short(compared.most),
        "is_sure": compared.is_sure,
    }


_ONE_NODE = Limits(nodes=1)
_VARIANT_TURNS = 30
_TURNS_S = 6.0


@dataclass(frozen=True, slots=True)
class Variant:
    """A network with some parts of the compiler.

    part   the part that was added last       does   what that part does
    make   builds the executable
    """

    part: str
    does: str
    make: Callable[[], Executable]


def variants_of(
    source: Graph, graph: Graph, tuned: Executable, target: base.Target, threads: int
) -> tuple[Variant, ...]:
    """The variants, from no part to all parts.

    source   the network          graph   the rewritten network, or the source
    tuned    the executable of that graph with the schedules on record
    """

    def untuned(make: Callable[[], Partition], count: int) -> Callable[[], Executable]:
        return lambda: finish(make(), target, count, MemoryStore())

    def plain(limits: Limits | None = None) -> Partition:
        price = open_price(target, threads)
        lowered = run_target_passes(source, target, price)
        if limits is not None:
            return partition(lowered, limits)
        return partition(lowered, price=price)

    start = "a kernel for each operator, plain layouts, one thread, untuned"
    variants = [
        Variant("operators", start, untuned(lambda: plain(_ONE_NODE), 1)),
        Variant("fusion", "operators that follow each other share a kernel", untuned(plain, 1)),
    ]
    if isinstance(target, base.CpuTarget):
        does = "tensors lie in memory as their kernels read them"
        variants.append(Variant("layouts", does, untuned(lambda: cut(source, target, threads), 1)))
    if threads > 1:
        make = untuned(lambda: cut(source, target, threads), threads)
        variants.append(Variant("threads", f"{threads} threads in place of one", make))
    if graph is not source:
        make = untuned(lambda: cut(graph, target, threads), threads)
        variants.append(Variant("rewriting", "proved rules make another graph", make))
    does = "the schedules that were measured to be fast"
    return (*variants, Variant("schedules", does, lambda: tuned))


def variant_values(
    variants: Sequence[Variant], inputs: Mapping[str, base.Array], deadline: float
) -> Values:
    """The time of each variant, and the missing variants with the reasons.

    deadline   of the monotonic clock, after which no further variant is built.  The last variants,
               whose kernels exist, are built first
    """
    built: dict[str, Executable] = {}
    missing: list[Values] = []
    for variant in reversed(variants):
        try:
            if time.monotonic() > deadline:
                raise TimeoutError(LATE)
            with base.override(dump=""):
                built[variant.part] = variant.make()
        except (base.TensorwrightError, TimeoutError) as error:
            reason = error.reason if isinstance(error, base.TensorwrightError) else str(error)
            missing.append({"part": variant.part, "reason": reason})
    shown = [variant for variant in variants if variant.part in built]
    executables = [built[variant.part] for variant in shown]
    samples = samples_in_turns(executables, inputs, _VARIANT_TURNS, _TURNS_S) or []
    parts = [
        {"part": variant.part, "does": variant.does, **timing(taken)}
        for variant, taken in zip(shown, samples, strict=True)
    ]
    return {"parts": parts, "missing": missing}
