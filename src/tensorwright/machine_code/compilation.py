"""Turn LLVM IR text into object code or assembly for a `CpuTarget`.

The target is described to LLVM by feature flags, never by a CPU name: LLVM guesses names wrongly
on virtual machines, and a name brings tuning along, such as "prefer 256-bit vectors", that would
halve the speed of AVX-512 code written by hand. All floating-point contraction is explicit: LLVM
fuses `llvm.fmuladd` and pairs of instructions flagged `contract`, and nothing else.

Pipelines, measured on a direct convolution with 112 FMAs in its inner loop (time to object code,
relative; all but the last run equally fast; benchmarks/kernels/pass_pipelines.py):

    O3 with vectorisers and unroller   1.00      O3 or O2 without them                  0.73
    O1 without them                    0.62      function simplification O1             0.49
    sroa instcombine simplifycfg       0.34      sroa simplifycfg, which is taken       0.26
    no pass at all                     0.29, and the kernel runs at 0.38 of the speed

The addresses that the emitter writes are already what the machine should compute: pointers that
loops advance, and constants. Two passes of LLVM undo that and stay out: instcombine sinks the parts
of an address into the innermost loop, and loop strength reduction, once it gives up on the many
accesses there, gives each row of a register tile a pointer of its own, reloaded from the stack.

What remains (0.22) is instruction selection and register allocation; its level (1 to 3) makes no
difference, and NewGVN and LoopRotate bring nothing that it does not find by itself. llvmlite holds
one lock around every call into LLVM: to build in parallel takes processes, not threads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import llvmlite.binding as llvm

from tensorwright.base import HERE, CpuTarget, InternalError, MachineError

PIPELINE_VERSION = 2
"""Counts up whenever the same IR may give other object code; part of every cache key."""

_CONTEXT_LINES = 3


def pipeline_key() -> str:
    """Name the compiler: object code of equal IR, target and key is equal."""
    version = ".".join(str(part) for part in llvm.llvm_version_info)
    return f"llvm{version}:{PIPELINE_VERSION}"


def compile_module(ir_text: str, target: CpuTarget) -> bytes:
    """Compile a module to a relocatable object file (position independent, small code model).

    Raises:  InternalError if LLVM does not accept the text, with the offending line marked;
             MachineError if this LLVM does not know the target.
    """
    machine = create_machine(target)
    with _optimised(ir_text, machine) as module:
        return bytes(machine.emit_object(module))


def assembly(ir_text: str, target: CpuTarget) -> str:
    """Compile a module to assembly text; errors as `compile_module`."""
    machine = create_machine(target)
    with _optimised(ir_text, machine) as module:
        return str(machine.emit_assembly(module))


def create_machine(target: CpuTarget) -> llvm.TargetMachine:
    """LLVM's machine for a target; made once per triple and feature set.

    Raises:  MachineError if this LLVM does not know the triple.
    """
    return _machine(target.triple, feature_flags(target))


def feature_flags(target: CpuTarget) -> str:
    """The features of code as LLVM reads them: "+avx2,+fma,...,-prefer-256-bit"."""
    flags = [f"+{name}" for name in sorted(target.instructions)]
    if target.arch == "x86-64":
        flags.append("-prefer-256-bit")
    return ",".join(flags)


@lru_cache(maxsize=32)
def _machine(triple: str, flags: str) -> llvm.TargetMachine:
    _initialise()
    try:
        llvm_target = llvm.Target.from_triple(triple)
    except RuntimeError as error:
        raise MachineError(
            stage="codegen",
            where=f"target {triple}",
            reason=f"the installed LLVM cannot generate code for it ({error})",
            remedy="name another target, or install an llvmlite that includes it",
        ) from error
    # The bare architecture: every x86-64, every ARMv8-A. Features add to it.
    name = "x86-64" if triple.startswith("x86_64") else "generic"
    return llvm_target.create_target_machine(
        cpu=name, features=flags, opt=2, reloc="pic", codemodel="small"
    )


@lru_cache(maxsize=1)
def _initialise() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    # Inline assembly; without its parser LLVM aborts the process. There is one for the host only.
    llvm.initialize_native_asmparser()
    # LLVM has this switch for the whole process only.
    llvm.set_option("tensorwright", "-disable-lsr")


@contextmanager
def _optimised(ir_text: str, machine: llvm.TargetMachine) -> Iterator[llvm.ModuleRef]:
    """The module after all passes, in an LLVM context of its own; the block's end frees both.

    The module must be freed before its context, or the process crashes. After an error both hang
    on a traceback, and the garbage collector would free them in any order.
    """
    context = llvm.create_context()
    module: llvm.ModuleRef | None = None
    try:
        module = llvm.parse_assembly(ir_text, context=context)
        module.verify()
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        _run_passes(module, machine, has_inlining="alwaysinline" in ir_text)
        yield module
    except RuntimeError as error:
        raise _refusal(ir_text, str(error)) from error
    finally:
        if module is not None:
            module.close()
        context.close()


def _run_passes(module: llvm.ModuleRef, machine: llvm.TargetMachine, *, has_inlining: bool) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_interleaving = False
    options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, options)
    if has_inlining:
        inliner = llvm.create_new_module_pass_manager()
        inliner.add_always_inliner_pass()
        inliner.run(module, builder)
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)


def _refusal(ir_text: str, message: str) -> InternalError:
    lines = ir_text.splitlines()
    blamed = _blamed_line(lines, message)
    reason = message.strip()
    if blamed is not None:
        first = max(0, blamed - _CONTEXT_LINES)
        shown = [
            f"  {number + 1:5d}  {lines[number]}{f'    {HERE}' if number == blamed else ''}"
            for number in range(first, min(len(lines), blamed + _CONTEXT_LINES + 1))
        ]
        reason = "\n".join([reason, *shown])
    where = "LLVM IR" if blamed is None else f"LLVM IR line {blamed + 1}"
    return InternalError(stage="codegen", where=where, reason=reason)


def _blamed_line(lines: list[str], message: str) -> int | None:
    """The index of the line that a parser's or verifier's message is about.

    The parser gives "<string>:line:column:"; the verifier quotes the instruction on a line.
    """
    parsed = re.search(r":(\d+):\d+: error", message)
    if parsed is not None:
        return min(int(parsed[1]), len(lines)) - 1
    stripped = [line.strip() for line in lines]
    for quoted in message.splitlines():
        if quoted.strip() and quoted.strip() in stripped:
            return stripped.index(quoted.strip())
    return None
