"""The gain of each part of the compiler: variants with one more part each, timed in turns.

operators    a kernel for each operator, plain layouts, one thread, no search
fusion       nodes share kernels              layouts      tensors lie as kernels read them
threads      all threads                      rewriting    the rewritten graph
schedules    the schedules of the search
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tensorwright.base import Array, CpuTarget, Target, TensorwrightError, override
from tensorwright.graph import Graph, Limits, Partition, partition, run_target_passes
from tensorwright.pipeline import cut, finish, open_price
from tensorwright.records import MemoryStore
from tensorwright.report.numbers import LATE, Values, timing
from tensorwright.runtime import Executable
from tensorwright.runtime.measuring import samples_in_turns

_ALONE = Limits(nodes=1)
_TURNS = 30
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
    source: Graph, graph: Graph, tuned: Executable, target: Target, threads: int
) -> tuple[Variant, ...]:
    """The variants, from no part to all parts.

    source   the network          graph   the rewritten network, or the source
    tuned    the executable of that graph with the schedules on record
    """

    def untuned(make: Callable[[], Partition], count: int) -> Callable[[], Executable]:
        return lambda: finish(make(), target, count, MemoryStore())

    def plain(limits: Limits | None = None) -> Partition:
        lowered = run_target_passes(source, target)
        if limits is not None:
            return partition(lowered, limits)
        return partition(lowered, price=open_price(target, threads))

    start = "a kernel for each operator, plain layouts, one thread, untuned"
    variants = [
        Variant("operators", start, untuned(lambda: plain(_ALONE), 1)),
        Variant("fusion", "operators that follow each other share a kernel", untuned(plain, 1)),
    ]
    if isinstance(target, CpuTarget):
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
    variants: Sequence[Variant], inputs: Mapping[str, Array], deadline: float
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
            with override(dump=""):
                built[variant.part] = variant.make()
        except (TensorwrightError, TimeoutError) as error:
            reason = error.reason if isinstance(error, TensorwrightError) else str(error)
            missing.append({"part": variant.part, "reason": reason})
    shown = [variant for variant in variants if variant.part in built]
    executables = [built[variant.part] for variant in shown]
    samples = samples_in_turns(executables, inputs, _TURNS, _TURNS_S) or []
    parts = [
        {"part": variant.part, "does": variant.does, **timing(taken)}
        for variant, taken in zip(shown, samples, strict=True)
    ]
    return {"parts": parts, "missing": missing}
