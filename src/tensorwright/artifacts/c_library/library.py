"""Write a network as a C library: header, sources, weights, Makefile and an example.

NAME.h  NAME.c        how to call it; the plan of the network as C. NAME is `tw_` and the letters of
                      the network's name: no word of C, and no header or function of the system
kernels/kernel_N.c    one file for each kernel, as the back end `c` writes it
kernels/needs.c       the features that kernels need; NAME_load checks that the processor has them
NAME.weights          the constants, packed as the kernels read them
example.c Makefile    `make && ./example` runs the network, and compares its outputs with the
                      expected ones in example_outputs.bin

The files of the folder `templates` are the same for every network; `_values` and `size_texts` give
the texts for the names in them.

If the network has open sizes, each call gives them (`open_sizes.py`), and there are several
examples.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tensorwright import runtime
from tensorwright.artifacts.assemble import plan_network
from tensorwright.artifacts.c_library.open_sizes import SizeFields, bounded, filled, size_texts
from tensorwright.artifacts.cached_build import opaque_programs
from tensorwright.artifacts.kernel import emit_source, load_backend, loop_program
from tensorwright.base import CpuTarget, UnsupportedError, make_folder, number_in, write_atomically
from tensorwright.codegen import Signature
from tensorwright.codegen.c import FLAGS, FLOAT_STATE, machine_flags
from tensorwright.graph import Partition
from tensorwright.loop import LoopProgram, run_target_passes
from tensorwright.ops import Array
from tensorwright.schedule import Schedule

_HEAD_BYTES = 64
_ALIGN = 64
_MOST_AXES = 8
_BOOL = "unsigned char"
_FLOAT_NOTE = """
   Denormal numbers, those nearest to 0, count as 0; the float state of the thread is restored."""
_OF_CPUID = {
    "f16c": "1, 0, 2, 29",
    "movbe": "1, 0, 2, 22",
    "lzcnt": "0x80000001, 0, 2, 5",
    "avxvnni": "7, 1, 0, 4",
    "avx512fp16": "7, 0, 3, 23",
}
"""Features that some compilers cannot check by name -> leaf, part, register and bit of CPUID."""


@dataclass(frozen=True, slots=True)
class Example:
    """A call that the example program makes.

    sizes     values of the named sizes, by name
    expected  the outputs; empty if this machine cannot compute them
    """

    sizes: Mapping[str, int]
    inputs: Mapping[str, Array]
    expected: Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class CLibrary:
    """A network to write as C.

    traces    workload key -> its schedule
    examples  one; several if the network has open sizes
    """

    name: str
    partition: Partition
    traces: Mapping[str, Schedule]
    target: CpuTarget
    threads: int
    examples: tuple[Example, ...]

    @property
    def is_checked(self) -> bool:
        """Whether the outputs of all examples were computed."""
        return all(example.expected for example in self.examples)


def write_c_library(library: CLibrary, folder: Path) -> tuple[str, ...]:
    """Write all files into a folder, which is made if it is missing, and return their names.

    Raises:  UnsupportedError for an operator without a kernel, and for a size without a greatest
             number; the back end's errors; OutputError.
    """
    name = prefix_of(library.name)
    files: dict[str, bytes] = {}
    signatures: dict[str, Signature] = {}
    for number, (key, heading, program) in enumerate(_programs(library)):
        program = replace(program, name=f"{name}_kernel_{number}")
        source = emit_source(program, library.target, load_backend("c"))
        signatures[key] = source.signature
        files[f"kernels/kernel_{number}.c"] = f"/* {heading} */\n{source.text}".encode()
    plan, arrays = plan_network(library.partition, signatures, library.target, library.threads)
    _refuse(plan)
    plan = runtime.with_room(plan, {size.name: size.most or 0 for size in plan.sizes})
    weights, offsets = _weights(arrays)
    values = _values(library, name, plan, len(weights), offsets)
    kernels = " ".join(f"kernels/kernel_{n}.o" for n in range(len(plan.kernels)))
    values |= {
        "machine": " ".join(machine_flags(library.target)),
        "flags": " ".join(FLAGS),
        "objects": f"kernels/needs.o {kernels}",
        "tools": filled("example_tools.c", values),
    }
    templates = {
        "kernels/needs.c": "needs.c",
        f"{name}.h": "library.h",
        f"{name}.c": "library.c",
        "example.c": "open_example.c" if plan.sizes else "example.c",
        "Makefile": "Makefile",
    }
    files |= {path: filled(each, values).encode() for path, each in templates.items()}
    files[f"{name}.weights"] = _weights_file(weights)
    for number, each in enumerate(library.examples):
        suffix = f"_{number}" if plan.sizes else ""
        files[f"example_inputs{suffix}.bin"] = _raw(plan.inputs, each.inputs)
        if library.is_checked:
            files[f"example_outputs{suffix}.bin"] = _raw(plan.outputs, each.expected)
    make_folder(folder / "kernels")
    for path, content in files.items():
        write_atomically(folder / path, content)
    return tuple(files)


def prefix_of(network: str) -> str:
    """The beginning of all names of a library: a model `math` has the header `tw_math.h`."""
    letters = re.sub(r"[\W_]+", "_", network, flags=re.ASCII).strip("_")
    return f"tw_{letters or 'network'}"


def _programs(library: CLibrary) -> Iterator[tuple[str, str, LoopProgram]]:
    """The key, a name for people and the loop nest of each kernel."""
    for workload in library.partition.workloads:
        program = loop_program(workload, library.traces[workload.key], library.target)
        yield workload.key, f"{workload.name}, {workload.key}", program
    for text, program in opaque_programs(library.partition, library.target.kind).items():
        yield text, program.name, run_target_passes(program, library.target)


def _refuse(plan: runtime.Plan) -> None:
    bounded(plan.sizes)
    if plan.counted:
        raise UnsupportedError(
            stage="compile",
            where=f"size {plan.counted[0]}",
            reason="a loop decides it while the network runs, and a C library takes sizes from "
            "its caller",
            remedy="compile to an executable, or fix the number of iterations in the model",
        )
    for step in plan.steps:
        if isinstance(step, runtime.HostStep):
            raise UnsupportedError(
                stage="compile",
                where=f"operator {step.operator}",
                reason="there is no kernel for it, so it runs in Python, and a C library has "
                "no Python",
                remedy="remove the operator from the model, or compile to an executable",
                operator=step.operator,
            )
    for spec in (*plan.inputs, *plan.outputs):
        if len(spec.shape) > _MOST_AXES:
            raise UnsupportedError(
                stage="compile",
                where=f"tensor {spec}",
                reason=f"the header describes tensors of at most {_MOST_AXES} axes",
                remedy="reshape it in the model",
                operator="shape",
            )


def _values(
    library: CLibrary, name: str, plan: runtime.Plan, weights_bytes: int, offsets: tuple[int, ...]
) -> dict[str, object]:
    """The texts that replace the names in the templates, by name."""
    tensors = [f"   inputs[{n}]   {spec}" for n, spec in enumerate(plan.inputs)]
    tensors += [f"   outputs[{n}]  {spec}" for n, spec in enumerate(plan.outputs)]
    symbols = [kernel.symbol for kernel in plan.kernels]
    steps = _steps(plan, 0, len(plan.steps), offsets)
    sizes = size_texts(plan, name, steps, [example.sizes for example in library.examples])
    room = plan.at_capacity
    asked = [
        (feature, 1 << bit)
        for bit, feature in enumerate(library.target.instructions)
        if library.target.arch == "x86-64"
    ]
    note = _FLOAT_NOTE if runtime.float_bits(library.target.arch) else ""
    return {
        **sizes,
        "title": _comment(library.name),
        "name": name,
        "NAME": name.upper(),
        "target": library.target.triple,
        "tensors": _comment("\n".join(tensors)),
        "inputs": len(plan.inputs),
        "outputs": len(plan.outputs),
        "megabytes": max(1, round(weights_bytes / 1e6)),
        "weights_bytes": weights_bytes,
        "arena_bytes": plan.arena_bytes,
        "shared_bytes": max((number_in(k.workspace_bytes) for k in room.kernels), default=0),
        "thread_bytes": max((number_in(k.local_workspace_bytes) for k in room.kernels), default=0),
        "descriptions": _described(f"{name}_inputs", name, plan.inputs, room.inputs)
        + _described(f"{name}_outputs", name, plan.outputs, room.outputs),
        "declarations": "".join(f"void {each}(void **, void *, int);\n" for each in symbols),
        "steps": steps,
        "checks": "".join(
            f"    if ({name}_needs & {bit}u && !{_asked(feature)}) return 1;\n"
            for feature, bit in asked
        ),
        "float_state": FLOAT_STATE + _flushed(),
        "notes": f"{note}{sizes['run_notes']}",
        "cpuid": filled("cpuid.c", {}) if any(feature in _OF_CPUID for feature, _ in asked) else "",
        "bits": "".join(
            f"#ifdef {_macro(feature)}\n    | {bit}u\n#endif\n" for feature, bit in asked
        ),
        "features": ", ".join(library.target.instructions) or library.target.name,
        "threads": plan.threads,
        "is_checked": int(library.is_checked),
    }


def _flushed() -> str:
    """C code: the bits that a call sets in the float state, on the processor that compiles it."""
    x86, arm = (runtime.float_bits(arch) for arch in ("x86-64", "aarch64"))
    return (
        f"#if defined(__x86_64__)\nenum {{ FLUSHED = {x86} }};\n"
        f"#elif defined(__aarch64__)\nenum {{ FLUSHED = {arm} }};\n"
        "#else\nenum { FLUSHED = 0 };\n#endif\n"
    )


def _asked(feature: str) -> str:
    """A C condition: the processor has a feature."""
    bit = _OF_CPUID.get(feature)
    return f"has({bit})" if bit else f'__builtin_cpu_supports("{feature}")'


def _macro(feature: str) -> str:
    """The macro that a C compiler defines if it may use a feature."""
    return f"__{feature.upper().replace('.', '_')}__"


def _described(
    variable: str,
    name: str,
    specs: tuple[runtime.TensorSpec, ...],
    largest: tuple[runtime.TensorSpec, ...],
) -> str:
    rows = [
        f'    {{{_quoted(spec.name)}, "{spec.dtype}", {len(spec.shape)}, '
        f"{{{_numbers(spec)}}}, {room.size_bytes}}},\n"
        for spec, room in zip(specs, largest, strict=True)
    ]
    return f"const {name}_tensor {variable}[] = {{\n{''.join(rows)}}};\n"


def _numbers(spec: runtime.TensorSpec) -> str:
    """The extents of a tensor, -1 for an open one."""
    shape = [extent if isinstance(extent, int) else -1 for extent in spec.shape]
    return ", ".join(map(str, shape)) or "0"


def _steps(plan: runtime.Plan, begin: int, end: int, offsets: tuple[int, ...]) -> str:
    """The C text of the steps of a block."""
    texts: list[str] = []
    for position, inner in runtime.blocks_of(plan.steps, begin, end):
        blocks = [_steps(plan, first, last, offsets) for first, last in inner]
        texts.append(_step(plan, plan.steps[position], offsets, *blocks))
    return "".join(texts)


def _step(plan: runtime.Plan, step: runtime.Step, offsets: tuple[int, ...], *blocks: str) -> str:
    """The C text of a step.

    blocks   the texts of its blocks, which follow it in the plan
    """
    fields = SizeFields.of(plan.sizes)
    match step:
        case runtime.KernelStep(kernel, arguments, label, most_threads=most):
            given = [f"(void *)({_address(ref, offsets)})" for ref in arguments]
            given += [f"(void *)(intptr_t){fields.amount(s)}" for s in plan.kernels[kernel].sizes]
            addresses = ", ".join(given)
            count = f"threads < {most} ? threads : {most}" if most else "threads"
            call = f"{plan.kernels[kernel].symbol}(args, model->workspace, {count});"
            return (
                f"    {{ /* {_comment(label)} */\n        void *args[] = {{{addresses}}};\n"
                f"        {call}\n    }}\n"
            )
        case runtime.CopyStep(source, destination, size_bytes):
            into, from_ = _address(destination, offsets), _address(source, offsets)
            return f"    memcpy({into}, {from_}, {fields.amount(size_bytes)});\n"
        case runtime.BranchStep(condition):
            then, otherwise = (textwrap.indent(block, "    ") for block in blocks)
            return (
                f"    if ({_value(condition, _BOOL, offsets)}) {{\n{then}"
                f"    }} else {{\n{otherwise}    }}\n"
            )
        case runtime.LoopStep(count, condition, iteration, counted=counted):
            limit, holds = _value(count, "int64_t", offsets), _value(condition, _BOOL, offsets)
            counter = f"*(int64_t *)({_address(iteration.ref, offsets)})"
            (body,) = (textwrap.indent(block, "    ") for block in blocks)
            holds += f" && i < {counted}" if isinstance(counted, int) else ""
            return (
                f"    for (int64_t i = 0, count = {limit}; i < count && {holds}; i++) {{\n"
                f"        {counter} = i;\n{body}    }}\n"
            )
        case runtime.CollectStep(source, iteration, destination):
            row_bytes = fields.amount(runtime.bytes_of_type(source.type))
            at = _value(iteration, "int64_t", offsets)
            into = f"{_address(destination.ref, offsets)} + {at} * {row_bytes}"
            return f"    memcpy({into}, {_address(source.ref, offsets)}, {row_bytes});\n"
        case runtime.HostStep():
            raise AssertionError("host steps are refused before")


def _value(typed: runtime.TypedRef, kind: str, offsets: tuple[int, ...]) -> str:
    """C code that reads a number from memory."""
    return f"*(const {kind} *)({_address(typed.ref, offsets)})"


def _address(ref: runtime.BufferRef, offsets: tuple[int, ...]) -> str:
    match runtime.host_ref(ref):
        case runtime.InputRef(index, offset):
            return f"(const char *)inputs[{index}] + {offset}"
        case runtime.OutputRef(index, offset):
            return f"(char *)outputs[{index}] + {offset}"
        case runtime.ConstantRef(index, offset):
            return f"weights + {offsets[index] + offset}"
        case runtime.ArenaRef(offset):
            return f"arena + {offset}"


def _weights(arrays: tuple[Array, ...]) -> tuple[bytes, tuple[int, ...]]:
    """All constants one after the other, and the offset of each."""
    parts: list[bytes] = []
    offsets: list[int] = []
    offset = 0
    for array in arrays:
        content = array.tobytes()
        padding = -len(content) % _ALIGN
        parts += [content, bytes(padding)]
        offsets.append(offset)
        offset += len(content) + padding
    return b"".join(parts), tuple(offsets)


def _weights_file(weights: bytes) -> bytes:
    total = int(np.frombuffer(weights, np.uint64).sum(dtype=np.uint64)) if weights else 0
    head = b"TWWEIGHT" + np.uint32(1).tobytes() + bytes(4)
    head += np.uint64(len(weights)).tobytes() + np.uint64(total).tobytes()
    return head.ljust(_HEAD_BYTES, b"\0") + weights


def _raw(specs: tuple[runtime.TensorSpec, ...], arrays: Mapping[str, Array]) -> bytes:
    return b"".join(np.ascontiguousarray(arrays[spec.name]).tobytes() for spec in specs)


def _comment(text: str) -> str:
    """A text that may stand in a C comment."""
    return text.replace("*/", "* /").replace("/*", "/ *")


def _quoted(text: str) -> str:
    """A text as a C string."""
    plain = set(range(32, 127)) - set(b'"\\?')
    letters = (chr(byte) if byte in plain else f"\\{byte:03o}" for byte in text.encode())
    return f'"{"".join(letters)}"'
