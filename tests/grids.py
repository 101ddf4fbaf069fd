"""Run programs for graphics processors without one: OpenCL by PoCL, CUDA's text by g++.

`machines()` are the ways; each takes a loop program and arrays, as the interpreter does.
"""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorwright.artifacts import load_backend
from tensorwright.base import GpuTarget, Grid, knobs, parse_target
from tensorwright.codegen import Source
from tensorwright.codegen.c.kernel import C
from tensorwright.codegen.c_family import emit_grid
from tensorwright.codegen.cuda import CUDA
from tensorwright.expr import Placeholder, topological_order
from tensorwright.loop import LoopProgram, Parameter, Role
from tensorwright.runtime import Device, device_of, kernel_spec
from tensorwright_lab.cards import Arrays, empty_results, given_array, run_on

SHIM = Path(__file__).parent / "shims" / "cuda.h"


def gpu_target(name: str) -> GpuTarget:
    target = parse_target(name)
    assert isinstance(target, GpuTarget)
    return target


OPENCL_GENERIC, SM_80, SM_90A = map(gpu_target, ("opencl:generic", "cuda:sm_80", "cuda:sm_90a"))
OPENCL, CUDA_BACKEND = load_backend("opencl"), load_backend("cuda")

_GRID = CUDA.grid
assert _GRID is not None
CUDA_ON_CPU = replace(
    CUDA,
    conversions=C.conversions,
    grid=replace(
        _GRID,
        dynamic_shared="char *const shared = shim_shared",
        unroll="",
        exchange=("exchange", ""),
        copies=dict.fromkeys(("start_copy", "commit_copies", "wait_copies"), ""),
    ),
)
"""CUDA's dialect, whose helpers without assembly the shim has."""


@dataclass(frozen=True)
class Machine:
    """A way to run programs.

    layer     the layer of tests that it is
    missing   why it is not here; "" where it is
    """

    name: str
    layer: str
    missing: Callable[[], str]
    run: Callable[[LoopProgram, Arrays], dict[str, np.ndarray[Any, Any]]]

    def require(self) -> None:
        """Skip the test where the machine is not here."""
        reason = self.missing()
        if reason:
            pytest.skip(reason)


def opencl_device() -> Device:
    """The device of tests.  Skips where there is none."""
    reason = missing_opencl()
    if reason:
        pytest.skip(reason)
    return device_of(OPENCL_GENERIC)


@functools.cache
def missing_opencl() -> str:
    """Why OpenCL cannot run here; "" where it can."""
    os.environ.setdefault("POCL_CACHE_DIR", str(_cache_folder()))
    lack = __import__("tensorwright.runtime.cards.opencl", fromlist=["DEVICE"]).DEVICE.missing(
        OPENCL_GENERIC
    )
    return "" if lack is None else f"OpenCL: {lack.reason}"


def _cache_folder() -> Path:
    """Where PoCL keeps what it has compiled, from run to run."""
    folder = Path(tempfile.gettempdir(), f"tensorwright-pocl-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def missing_compiler() -> str:
    """Why C++ cannot be compiled here; "" where it can."""
    return "" if shutil.which("g++") else "CUDA's text on the processor: there is no g++"


def run_on_opencl(program: LoopProgram, arrays: Arrays) -> dict[str, np.ndarray[Any, Any]]:
    """The outputs of a program by the OpenCL device."""
    opencl_device()
    return run_on(OPENCL_GENERIC, program, arrays)


def run_on_cpu(program: LoopProgram, arrays: Arrays) -> dict[str, np.ndarray[Any, Any]]:
    """The outputs of a program by CUDA's text, compiled by g++."""
    (results,) = run_all_on_cpu([program], [arrays])
    return results


def run_all_on_cpu(
    programs: Sequence[LoopProgram], arrays: Sequence[Arrays]
) -> list[dict[str, np.ndarray[Any, Any]]]:
    """The outputs of many programs, whose texts are compiled together."""
    fast_math = knobs.FAST_MATH.get()
    sources = [
        emit_grid(
            replace(program, name=f"{program.name}_{number}"),
            SM_80,
            CUDA_ON_CPU,
            fast_math=fast_math,
            has_copies=True,
        )
        for number, program in enumerate(programs)
    ]
    launchers = compiled_on_cpu(sources)
    found: list[dict[str, np.ndarray[Any, Any]]] = []
    for program, source, given, launch in zip(programs, sources, arrays, launchers, strict=True):
        results = empty_results(program)
        placed = [
            np.ascontiguousarray(results.get(each.buffer.name, given_array(each, given)))
            for each in program.parameters
        ]
        workspace = np.zeros(kernel_spec(source.signature).scratch_bytes(0) + 64, np.uint8)
        launch([each.ctypes.data for each in (*placed, workspace)])
        outputs = zip(program.parameters, placed, strict=True)
        found.append({p.buffer.name: a for p, a in outputs if p.role is Role.OUTPUT})
    return found


def compiled_on_cpu(sources: Sequence[Source]) -> list[Callable[[list[int]], None]]:
    """For each text, what launches its functions for the shim, one after the other."""
    lines = ['#include "cuda.h"\n']
    for number, source in enumerate(sources):
        lines += [f"namespace program_{number} {{", source.text, *_launchers(source), "}\n"]
    with tempfile.TemporaryDirectory() as folder:
        text, code = Path(folder, "kernel.cpp"), Path(folder, "kernel.so")
        text.write_text("\n".join(lines))
        command = ["g++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", f"-I{SHIM.parent}"]
        done = subprocess.run(
            [*command, str(text), "-o", str(code)], check=False, capture_output=True, text=True
        )
        assert not done.returncode, f"{done.stderr[:3000]}\n{lines[2]}"
        library = ctypes.CDLL(str(code))

    def launcher(source: Source) -> Callable[[list[int]], None]:
        def launch(pointers: list[int]) -> None:
            table = (ctypes.c_void_p * len(pointers))(*pointers)
            for number in range(len(source.signature.launches)):
                getattr(library, f"launch_{number}_{source.signature.symbol}")(table)

        return launch

    return [launcher(source) for source in sources]


def _launchers(source: Source) -> Iterator[str]:
    """The functions that launch those of a text."""
    signature = source.signature
    kinds = [f"{CUDA.element(each.buffer.dtype)} *" for each in signature.parameters]
    arguments = ", ".join(f"({kind})p[{n}]" for n, kind in enumerate((*kinds, "char *")))
    for number, launch in enumerate(signature.launches):
        assert isinstance(launch, Grid)
        symbol = f"{signature.symbol}_{number}" if number else signature.symbol
        grid, block = (", ".join(map(str, each)) for each in (launch.grid, launch.block))
        yield (
            f"static void call_{number}(void **p) {{ {symbol}({arguments}); }}\n"
            f'extern "C" void launch_{number}_{signature.symbol}(void **p) {{\n'
            f"    const unsigned grid[] = {{{grid}}}, block[] = {{{block}}};\n"
            f"    shim_launch(call_{number}, p, grid, block);\n}}\n"
        )


def caller_shape(parameter: Parameter) -> tuple[Any, ...]:
    """The shape of what a caller passes for a parameter: of a constant before it is packed."""
    packing = parameter.packing
    if packing is None:
        return parameter.buffer.extents
    if packing.derivation is None:
        return packing.source_shape
    order = topological_order(packing.derivation)
    (constant,) = (each for each in order if isinstance(each, Placeholder))
    return constant.shape


MACHINES = (
    Machine("opencl", "pocl", missing_opencl, run_on_opencl),
    Machine("cuda-on-cpu", "shim", missing_compiler, run_on_cpu),
)
EACH_MACHINE = [
    pytest.param(each, id=each.name, marks=pytest.mark.layer(each.layer)) for each in MACHINES
]
"""They as parameters of a fixture."""


def machine_of(request: pytest.FixtureRequest) -> Machine:
    """The machine of a parameter; the body of a fixture.  Skips where it is missing."""
    chosen: Machine = request.param
    chosen.require()
    return chosen
