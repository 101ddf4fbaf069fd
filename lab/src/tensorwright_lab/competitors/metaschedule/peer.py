"""TVM MetaSchedule (Shao et al., NeurIPS 2022): tunes one operator, then runs its best schedule.

The path names a workload of `tvm.s_tir.meta_schedule.testing.te_workload`: a function of it with
option `shape` ("conv2d_nhwc", {"shape": [1, 7, 7, 512, 512, 3, 1, 1]}), or one of its cases by
number, from 1 on ("C2D.4"). All is as TVM has it by default: evolutionary search in batches of 64
on its XGBoost model; only builds leave out an import that they do not need. Operands are as the
workload gives them: weights are not packed beforehand. With option `copies`, a call runs the kernel
so often, each time on operands and an output of its own, as the other competitors do: on tensors
that TVM has placed, called from a native loop, so that no copy and no Python counts.

Trials and the curve of the best (see tuning_curve.py) are kept in the folder of the option
`work_dir`; a folder that has them goes on where it stopped, and one that has enough is only used.

How TVM's build workers build a candidate: as its default does, without what takes half a minute.

The default imports the tensor intrinsics of all processors, which are parsed anew in each worker of
each batch; schedules for vector units use none of them.

Many calls of a function that TVM compiled, in one native loop: Python's time does not count.

It is called by TVM's own way for programs in C, `TVMFFIFunctionCall` (tvm/ffi/c_api.h): a table has
a row of arguments for each call, 16 bytes each: the type of the argument, and where it lies.
"""

from __future__ import annotations

import ctypes
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import te
from tvm.driver import build
from tvm.ir.utils import derived_object
from tvm.s_tir import meta_schedule
from tvm.s_tir.meta_schedule.testing import te_workload
from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock

from tensorwright.base import CpuTarget, cpu_target, knobs
from tensorwright.peers.process.protocol import Arrays, Peer, PeerInfo, not_bound
from tensorwright.runtime import LoadedObject, load_ir
from tensorwright_lab.competitors import tuning_curve


def build_candidate(module: Any, target: Any, parameters: object) -> Any:
    """The code of a candidate."""
    return build(RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module), target=target)


_TENSOR = 70  # kTVMFFITensor
_IR = """
define i32 @tw_tvm_calls(ptr %call, ptr %function, ptr %table, i64 %row, i32 %width, i64 %rows) {
entry:
  %result = alloca [2 x i64], align 16
  br label %again
again:
  %i = phi i64 [0, %entry], [%next, %good]
  store [2 x i64] zeroinitializer, ptr %result
  %offset = mul i64 %i, %row
  %args = getelementptr i8, ptr %table, i64 %offset
  %code = call i32 %call(ptr %function, ptr %args, i32 %width, ptr %result)
  %failed = icmp ne i32 %code, 0
  br i1 %failed, label %done, label %good
good:
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %rows
  br i1 %more, label %again, label %done
done:
  %last = phi i32 [%code, %again], [0, %good]
  ret i32 %last
}
"""


class NativeCalls:
    """A function with the tensors of some calls; calling it makes all of them, in order.

    rows   the arguments of each call, as many in each; kept as long as this is
    Raises:  RuntimeError from a call of it where the function fails.
    """

    def __init__(self, function: Any, rows: Sequence[Sequence[Any]]) -> None:
        self._kept = function, rows
        self._table = np.array(
            [[(_TENSOR, each.__chandle__()) for each in row] for row in rows], np.uint64
        )
        self._code, self._run = _loop()
        self._numbers = (
            _entry(),
            function.__chandle__(),
            self._table.ctypes.data,
            self._table.strides[0],
            self._table.shape[1],
            self._table.shape[0],
        )

    def __call__(self) -> None:
        """Make all calls."""
        code = self._run(*self._numbers)
        if code:
            raise RuntimeError(f"the compiled function ended with code {code}")


@lru_cache(maxsize=1)
def _entry() -> int:
    """The address of TVM's function that calls functions."""
    library = ctypes.CDLL(tvm_ffi.libinfo.find_libtvm_ffi())
    return ctypes.cast(library.TVMFFIFunctionCall, ctypes.c_void_p).value or 0


@lru_cache(maxsize=1)
def _loop() -> tuple[LoadedObject, Any]:
    """The loop, compiled once in each process; the code keeps it in memory."""
    code = load_ir(_IR, ("tw_tvm_calls",))
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    kind = ctypes.CFUNCTYPE(
        ctypes.c_int32, pointer, pointer, pointer, number, ctypes.c_int32, number
    )
    return code, kind(code.address("tw_tvm_calls"))


TRIALS = 200
BATCH = 64
BUILD_S = 60.0


class TvmPeer(Peer):
    """See the module's text. Options: shape, trials, work_dir, seed, target (of ours),
    mcpu (of LLVM), batch, copies.
    """

    def __init__(self) -> None:
        self._module: Any = None
        self._shapes: tuple[tuple[int, ...], ...] = ()
        self._copies = 1
        self._outputs: list[Any] = []
        self.call: Callable[[], object] = not_bound

    def load(self, path: str, threads: int, options: Mapping[str, Any]) -> PeerInfo:
        """Tune what is left of the trials, and build the best schedule on record."""
        os.environ["TVM_NUM_THREADS"] = str(threads)
        tensors = make_workload(path, options.get("shape"))
        self._shapes = tuple(tuple(int(extent) for extent in each.shape) for each in tensors)
        self._copies = int(options.get("copies", 1))
        function = te.create_prim_func(list(tensors))
        machine = cpu_target(options.get("target", "native"))
        target = make_target(machine, threads, options.get("mcpu"))
        folder = Path(options.get("work_dir") or _default_folder(path, self._shapes, threads))
        folder.mkdir(parents=True, exist_ok=True)
        trials = int(options.get("trials", TRIALS))
        tune(function, target, folder, trials, options)
        database = meta_schedule.database.JSONDatabase(work_dir=str(folder))
        schedule = meta_schedule.tir_integration.compile_tir(database, function, target)
        if schedule is None:
            raise ValueError(f"none of {trials} trials could be measured: see {folder / 'logs'}")
        self._module = tvm.compile(schedule.mod, target=target)["main"]
        detail = f"MetaSchedule, {threads} threads, {_told(folder)}"
        return PeerInfo(str(tvm.__version__), detail, machine.vector_bytes)

    def bind(self, inputs: Arrays) -> None:
        """Copy the inputs, which are the operands in order, copy by copy, and place the outputs.

        A shape may be written otherwise than the workload does, with as many elements.
        """
        wanted = self._shapes[:-1] * self._copies
        if [array.size for array in inputs.values()] != [math.prod(shape) for shape in wanted]:
            given = [array.shape for array in inputs.values()]
            raise ValueError(f"inputs of shapes {given}, expected {list(wanted)}")
        pairs = zip(inputs.values(), wanted, strict=True)
        operands = [
            tvm.runtime.tensor(np.ascontiguousarray(array).reshape(shape)) for array, shape in pairs
        ]
        empty = np.zeros(self._shapes[-1], np.float32)
        self._outputs = [tvm.runtime.tensor(empty) for _ in range(self._copies)]
        count = len(self._shapes) - 1
        calls = [
            (*operands[copy * count : (copy + 1) * count], output)
            for copy, output in enumerate(self._outputs)
        ]
        self.call = NativeCalls(self._module, calls)

    def run(self) -> Arrays:
        """Compute the outputs of the bound inputs."""
        self.call()
        return {str(copy): output.numpy() for copy, output in enumerate(self._outputs)}


def make_workload(path: str, shape: Sequence[int] | None) -> tuple[Any, ...]:
    """The tensors of a workload by its name, inputs first, the output last.

    Raises:  ValueError for an unknown one.
    """
    name, _, number = path.partition(".")
    if shape is None and name in te_workload.CONFIGS:
        make, cases = te_workload.CONFIGS[name]
        index = int(number or 1) - 1
        if not 0 <= index < len(cases):
            raise ValueError(f"{name} has the cases 1 to {len(cases)}")
        return tuple(make(*cases[index]))
    make = te_workload.CONFIGS[name][0] if name in te_workload.CONFIGS else None
    make = make or getattr(te_workload, path, None)
    if make is None or shape is None:
        names = ", ".join(te_workload.CONFIGS)
        raise ValueError(f"{path} is neither one of {names}, nor a function with a shape")
    return tuple(make(*shape))


def make_target(machine: CpuTarget, threads: int, processor: str | None = None) -> Any:
    """A machine as TVM's target: by its features, as LLVM may not know its name."""
    features = machine.features
    if processor is None and "avx512f" in features:
        processor = "skylake-avx512"
    elif processor is None and "avx2" in features:
        processor = "haswell"
    settings: dict[str, Any] = {"kind": "llvm", "num-cores": threads}
    return tvm.target.Target(settings | ({"mcpu": processor} if processor else {}))


def tune(function: Any, target: Any, folder: Path, trials: int, options: Mapping[str, Any]) -> None:
    """Run the trials that the folder does not have yet."""
    curve = tuning_curve.read_curve(folder)
    done = curve[-1].trials if curve else 0
    if done >= trials:
        return
    meta_schedule.tune_tir(
        function,
        target=target,
        work_dir=str(folder),
        max_trials_global=trials - done,
        num_trials_per_iter=int(options.get("batch", BATCH)),
        num_tuning_cores="logical",
        seed=int(options.get("seed", 0)) + done,
        builder=meta_schedule.builder.LocalBuilder(f_build=build_candidate, timeout_sec=BUILD_S),
        measure_callbacks=[
            meta_schedule.measure_callback.AddToDatabase(),
            meta_schedule.measure_callback.RemoveBuildArtifact(),
            meta_schedule.measure_callback.UpdateCostModel(),
            CurveWriter(folder, curve),
        ],
    )


@derived_object
class CurveWriter(meta_schedule.measure_callback.PyMeasureCallback):  # type: ignore[misc]
    """Adds a point to the curve for every trial that comes back."""

    def __init__(self, folder: Path, curve: tuple[tuning_curve.CurvePoint, ...]) -> None:
        super().__init__()
        last = curve[-1] if curve else tuning_curve.CurvePoint(0, 0.0, math.inf)
        self.folder, self.trials, self.best_s = folder, last.trials, last.best_s
        self.start = time.monotonic() - last.elapsed_s

    def apply(
        self,
        task_scheduler: object,
        task_id: int,
        measure_candidates: object,
        builder_results: object,
        runner_results: Sequence[Any],
    ) -> None:
        """Told of the results of a batch."""
        elapsed_s = time.monotonic() - self.start
        points = []
        for result in runner_results:
            self.trials += 1
            if result.run_secs and not result.error_msg:
                times_s = [float(each) for each in result.run_secs]
                self.best_s = min(self.best_s, sum(times_s) / len(times_s))
            points.append(tuning_curve.CurvePoint(self.trials, elapsed_s, self.best_s))
        tuning_curve.append_points(self.folder, tuple(points))


def _told(folder: Path) -> str:
    """The last point of the curve, for messages."""
    last = tuning_curve.read_curve(folder)[-1]
    return f"{last.trials} trials in {last.elapsed_s:.0f} s, best {last.best_s * 1e3:.4g} ms"


def _default_folder(path: str, shapes: Sequence[Sequence[int]], threads: int) -> Path:
    """A folder of its own for every workload, in the knob `home`."""
    sizes = "-".join("x".join(map(str, shape)) for shape in shapes)
    return Path(knobs.HOME.get()) / "tvm" / f"{path}-{sizes}-{threads}"
