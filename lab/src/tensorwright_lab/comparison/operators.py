"""One case of the operator suite in all runtimes: the same answers, and how fast.

A runtime may enter with several forms of a case (zoo/operator_suite.py). A short rotation finds the
fastest of each; these then take turns with our kernel. Short cases run as independent copies in one
model or one native loop, so that the cost of a call does not decide.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tensorwright.base import CpuTarget, MachineError
from tensorwright.graph.onnx_export import save_onnx
from tensorwright.ops import Array, work
from tensorwright.peers.process.process import PeerProcess, is_held
from tensorwright.peers.process.protocol import Arrays, PeerFailed, find_kind, max_rel_error
from tensorwright.peers.process.rotation import Failure, Timing, rotate
from tensorwright_lab import zoo
from tensorwright_lab.competitors.our_operators import FACTORY as OUR_FACTORY

OURS = "ours"
PYTORCH = "pytorch"
METASCHEDULE = "metaschedule"
TORCH_FACTORY = "tensorwright_lab.competitors.torch_eager_operators:make"
TOLERANCE = 1e-4
LEAST_CASE_S = 1e-3
MOST_COPIES = 256
_PILOT_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class OpTime:
    """How one runtime did with one form; times in seconds per copy, None where not measured.

    time_s   the median                     low_s   the 10th percentile: without foreign load
    error    largest difference from the evaluator's answer, over the largest element
    failure  why it was not timed, or its answer is wrong; "" where all went well
    is_held  whether it kept to the vectors of a target that has narrower ones than the machine;
             None where there is no need, or it is ours
    """

    peer: str
    form: str
    time_s: float | None = None
    low_s: float | None = None
    error: float | None = None
    version: str = ""
    failure: str = ""
    is_held: bool | None = None


@dataclass(frozen=True, slots=True)
class OpPlan:
    """How cases are compared: `rounds` of the rotation, and its limit in seconds."""

    target: CpuTarget
    threads: int
    peers: tuple[str, ...]
    rounds: int = 7
    limit_s: float = 60.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class RivalPlan:
    """MetaSchedule's budget, and the folder where it keeps its trials and their curve."""

    trials: int
    folder: Path


@dataclass(slots=True)
class _Entrant:
    """A runtime with a form, in its process; `restore` gives outputs in the stated layout."""

    peer: str
    form: str
    path: str
    options: dict[str, object]
    inputs: Arrays
    restore: Callable[[Array], Array]
    copies: int
    process: PeerProcess | None = None
    error: float | None = None
    version: str = ""
    failure: str = ""
    is_held: bool | None = None
    timing: Timing | None = None

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.peer} {self.form}".strip()

    @property
    def kind(self) -> str:
        """Of its process."""
        if self.peer == METASCHEDULE:
            return "tvm"
        return "function" if self.path in (OUR_FACTORY, TORCH_FACTORY) else self.peer

    @property
    def median_s(self) -> float:
        """Seconds per call of all copies."""
        return self.timing.median_s if self.timing is not None else math.inf

    def close(self) -> None:
        """End the process; it has no part in what follows."""
        if self.process is not None:
            self.process.close()


def needed_flops(program: zoo.OperatorProgram) -> float:
    """The operations without those on zeros, which the nominal count of T2D has."""
    return min(program.case.gflop * 1e9, float(work(program.workload.outputs)))


def choose_copies(program: zoo.OperatorProgram, peak: float, bandwidth: float) -> int:
    """How many copies last at least a millisecond on a machine of some flop/s and bytes/s."""
    types = (*program.workload.input_types, *program.workload.output_types)
    size = sum(each.size_bytes for each in types)
    least_s = max(needed_flops(program) / peak, size / bandwidth)
    return min(max(1, math.ceil(LEAST_CASE_S / least_s)), MOST_COPIES)


def require_peer(name: str) -> None:
    """Refuse a runtime that is not known or not installed, with UsageError or MachineError."""
    if name != PYTORCH:
        find_kind(name)
    elif importlib.util.find_spec("torch") is None:
        raise MachineError(
            stage="peers",
            where=f"peer {name}",
            reason="the package torch is not installed",
            remedy="pip install torch",
        )


def compare_case(
    program: zoo.OperatorProgram,
    trace: str,
    copies: int,
    plan: OpPlan,
    rival: RivalPlan | None = None,
) -> tuple[OpTime, ...]:
    """Check and time our kernel by that trace, and every peer's forms; ours comes first.

    rival   MetaSchedule tunes the case, too, and runs as many copies

    Forms of a peer that its own best form beats keep the time of the short rotation.
    """
    with TemporaryDirectory(prefix="tensorwright-ops-") as folder, ExitStack() as stack:
        entrants = [_enter_ours(program, trace, copies, plan)]
        for peer in plan.peers:
            entrants += _enter_peer(program, peer, copies, plan, Path(folder))
        if rival is not None:
            entrants.append(_enter_metaschedule(program, rival, copies, plan))
        expected = [
            zoo.evaluate_program(program, zoo.draw_operands(program, copy, plan.seed))
            for copy in range(copies)
        ]
        for entrant in entrants:  # all at once: they import what they need at the same time
            process = PeerProcess(entrant.name, entrant.kind, target=plan.target)
            entrant.process = stack.enter_context(process)
        for entrant in entrants:
            _prepare(entrant, expected, plan)
        able = [entrant for entrant in entrants if not entrant.failure]
        _time(able, _PILOT_ROUNDS, plan.limit_s / 4)
        finalists = _fastest_of_each(able)
        for entrant in able:
            if entrant not in finalists:
                entrant.close()
        _time(finalists, plan.rounds, plan.limit_s)
        return tuple(_result(entrant) for entrant in entrants)


def _enter_ours(program: zoo.OperatorProgram, trace: str, copies: int, plan: OpPlan) -> _Entrant:
    shape = program.forms[0].output.stated
    options: dict[str, object] = {
        "case": program.case.to_json(),
        "trace": trace,
        "target": plan.target.name,
        "copies": copies,
        "seed": plan.seed,
    }
    return _Entrant(OURS, "", OUR_FACTORY, options, {}, lambda array: array.reshape(shape), copies)


def _enter_peer(
    program: zoo.OperatorProgram, peer: str, copies: int, plan: OpPlan, folder: Path
) -> list[_Entrant]:
    if peer == PYTORCH:
        return [_enter_torch(program, form, copies, plan) for form in torch_forms(program)]
    entrants = []
    for form in program.forms:
        path = folder / f"{form.name}.onnx"
        if not path.exists():
            save_onnx(zoo.form_graph(program, form, copies, plan.seed), path)
        inputs = zoo.form_inputs(program, form, copies, plan.seed)
        entrants.append(_Entrant(peer, form.name, str(path), {}, inputs, form.output.undo, copies))
    return entrants


def _enter_torch(program: zoo.OperatorProgram, form: str, copies: int, plan: OpPlan) -> _Entrant:
    options: dict[str, object] = {
        "case": program.case.to_json(),
        "form": form,
        "copies": copies,
        "seed": plan.seed,
    }
    restore = program.form(form.partition("/")[0]).output.undo
    return _Entrant(PYTORCH, form, TORCH_FACTORY, options, {}, restore, copies)


def _enter_metaschedule(
    program: zoo.OperatorProgram, rival: RivalPlan, copies: int, plan: OpPlan
) -> _Entrant:
    case = program.case
    options: dict[str, object] = {
        "shape": [number for _, number in case.fields],
        "trials": rival.trials,
        "work_dir": str(rival.folder),
        "target": plan.target.name,
        "seed": plan.seed,
        "copies": copies,
    }
    shape = program.forms[0].output.stated
    inputs = {
        f"{name}_{copy}": array
        for copy in range(copies)
        for name, array in zoo.draw_operands(program, copy, plan.seed).items()
    }
    return _Entrant(
        peer=METASCHEDULE,
        form="",
        path=case.family,
        options=options,
        inputs=inputs,
        restore=lambda array: array.reshape(shape),
        copies=copies,
    )


def torch_forms(program: zoo.OperatorProgram) -> tuple[str, ...]:
    """The variants that PyTorch is timed with: a form, and a memory format or another call."""
    names = [form.name for form in program.forms if form.name != "channels_last"]
    if program.constants:
        return tuple(f"{name}/{variant}" for name in names for variant in ("dense", "last"))
    if program.case.family == "GMM" and program.case.batch == 1:
        return tuple(f"{name}/{variant}" for name in names for variant in ("batched", "single"))
    return tuple(names)


def _prepare(entrant: _Entrant, expected: Sequence[Array], plan: OpPlan) -> None:
    """Load, and compare the answer; what fails is kept as the failure."""
    process = entrant.process
    assert process is not None, "started"
    try:
        info = process.load(entrant.path, plan.threads, entrant.options)
        entrant.version = info.version
        if entrant.peer != OURS:
            entrant.is_held = is_held(info, plan.target)
        outputs = [entrant.restore(array) for array in process.check(entrant.inputs).values()]
        entrant.inputs = {}
        entrant.error = max_rel_error(_named(outputs), _named(expected[: entrant.copies]))
        if not entrant.error <= TOLERANCE:
            entrant.failure = f"wrong answer: off by {entrant.error:.1e}"
    except PeerFailed as problem:
        entrant.failure = f"{problem.kind}: {problem.reason}"
    except ValueError as problem:
        entrant.failure = f"wrong answer: {problem}"
    if entrant.failure:
        entrant.close()


def _named(arrays: Sequence[Array]) -> dict[str, Array]:
    return {str(number): array for number, array in enumerate(arrays)}


def _time(entrants: Sequence[_Entrant], rounds: int, limit_s: float) -> None:
    processes = [entrant.process for entrant in entrants if entrant.process is not None]
    for entrant, result in zip(entrants, rotate(processes, rounds, limit_s=limit_s), strict=True):
        match result:
            case Timing():
                entrant.timing = result
            case Failure():
                entrant.failure = f"{result.kind.value}: {result.reason}"


def _fastest_of_each(entrants: Sequence[_Entrant]) -> list[_Entrant]:
    best: dict[str, _Entrant] = {}
    for entrant in entrants:
        fastest = best.get(entrant.peer)
        if not entrant.failure and (fastest is None or entrant.median_s < fastest.median_s):
            best[entrant.peer] = entrant
    return list(best.values())


def _result(entrant: _Entrant) -> OpTime:
    timing = None if entrant.failure else entrant.timing
    return OpTime(
        peer=entrant.peer,
        form=entrant.form,
        time_s=timing.median_s / entrant.copies if timing is not None else None,
        low_s=timing.percentile_s(10) / entrant.copies if timing is not None else None,
        error=entrant.error,
        version=entrant.version,
        failure=entrant.failure,
        is_held=entrant.is_held,
    )
