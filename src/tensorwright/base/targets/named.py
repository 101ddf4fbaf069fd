"""All named targets, and how to get one from its name.

    Target ::= CpuTarget | GpuTarget

parse_target("native")        this machine's processor, or the one that the knob `assume` names
parse_target("cuda:sm_90")    a named target, the same on every machine
parse_target("aarch64-neon+dotprod")    a named processor that has a feature more
cpu_target("x86-64-avx2")     the same, for code that concerns processors alone
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TypeAlias

from tensorwright.base.errors import MachineError, UsageError, did_you_mean
from tensorwright.base.knobs import ASSUME, assumed_machine
from tensorwright.base.machines import AssumedMachine
from tensorwright.base.targets.cpu import CPU_TARGETS, CpuTarget, detect_target, with_features
from tensorwright.base.targets.gpu import GPU_TARGETS, GpuTarget

Target: TypeAlias = CpuTarget | GpuTarget

TARGETS: tuple[Target, ...] = (*CPU_TARGETS, *GPU_TARGETS)
NAMES_OF_DEVICES = ("opencl", "cuda")
"""Names that stand for a device of this machine, which the runtime asks what it is."""


def parse_target(text: str) -> Target:
    """Read "native" or a name of `TARGETS`, with "+feature" for each feature that it has besides.

    Raises:  UsageError for an unknown name, with the nearest known one, or an unknown feature.
    """
    if text == "native":
        assumed = assumed_machine()
        return detect_target() if assumed is None else _assumed_target(assumed)
    base, *more = text.split("+")
    for target in TARGETS:
        if target.name == base:
            return with_features(cpu_target(target), tuple(more)) if more else target
    names = ["native", *NAMES_OF_DEVICES, *(target.name for target in TARGETS)]
    hint = did_you_mean(text, names)
    listed = "one of " + ", ".join(names)
    raise UsageError(
        stage="target",
        where=f"target {text!r}",
        reason="no such target",
        remedy=f"{hint} ({listed})" if hint else listed,
    )


@functools.cache
def _assumed_target(machine: AssumedMachine) -> CpuTarget:
    return replace(
        cpu_target(machine.target),
        name="native",
        l1_bytes=machine.l1_kib * 1024,
        l2_bytes=machine.l2_kib * 1024,
        l3_bytes=machine.l3_kib * 1024,
        cores=machine.cores,
        threads_per_core=1,
    )


def cpu_target(target: Target | str) -> CpuTarget:
    """The processor that a name, or a target, stands for.

    Code for processors alone calls this once, where it gets a target from a user. Behind that entry
    the type is `CpuTarget`.
    Raises:  UsageError for an unknown name; MachineError for a target that is not a processor.
    """
    is_name = isinstance(target, str) and target not in NAMES_OF_DEVICES
    named = parse_target(str(target)) if is_name else target
    if isinstance(named, CpuTarget):
        return named
    raise MachineError(
        stage="target",
        where=f"target {named}",
        reason="only processors have what this asks for",
        remedy="name a processor, one of native, " + ", ".join(each.name for each in CPU_TARGETS),
    )


@functools.cache
def _this_machine() -> CpuTarget:
    """The target of this machine, which does not change."""
    return detect_target()


def missing_here(target: Target) -> str:
    """A message about what this machine lacks to run code for a target; "" for nothing."""
    return target.missing_on(_this_machine())


def check_runs_here(target: Target, stage: str, where: str = "", remedy: str = "") -> None:
    """Refuse to run code for a target here, before the processor does: it would end the process.

    Code that loads object code, or starts a process that will, calls this first.
    Raises:  MachineError that names what this machine lacks.
    """
    missing = missing_here(target)
    if missing:
        if target.name == "native" and ASSUME.get():
            remedy = f"unset {ASSUME.variable}: this machine is no {ASSUME.get()}"
        raise MachineError(
            stage=stage,
            where=f"{where}, target {target}" if where else f"target {target}",
            reason=f"this machine cannot run its code: {missing}",
            remedy=remedy or "compile for the target 'native', or run it on such a machine",
        )
