"""A network beside other runtimes: each in a process of its own, all in turns."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter

from tensorwright.base import Array, TensorwrightError
from tensorwright.peers.process import (
    Failure,
    PeerFailed,
    PeerProcess,
    Timing,
    find_kind,
    max_rel_error,
    rotate,
)
from tensorwright.processes import hold_turn
from tensorwright.report.numbers import Values, short, timing
from tensorwright.runtime import Executable
from tensorwright.runtime.measuring import faster_half
from tensorwright.tuning.session import Comparison

NAMES = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}
_ROUNDS = 9
_LIMIT_S = 12.0
_WRONG = 1e-3  # an error relative to the largest number of an output: another answer

WriteModel = Callable[[Path], object]
"""Writes the model of a network as an ONNX file."""


class _Here:
    """The executable of this process as a competitor."""

    def __init__(self, executable: Executable, inputs: Mapping[str, Array]) -> None:
        self.name = "tensorwright"
        self._bound = executable.bind(dict(inputs))

    @contextmanager
    def turn(self) -> Iterator[None]:
        """As `Competitor.turn`; between turns nothing of it runs."""
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
    executable: Executable, inputs: Mapping[str, Array], write_model: WriteModel
) -> Values:
    """Our time and that of each runtime that is installed, or why there is none."""
    outputs = executable.run(inputs)
    rivals: list[Values] = []
    with ExitStack() as owned:
        folder = owned.enter_context(tempfile.TemporaryDirectory(prefix="tensorwright-report-"))
        path = Path(folder) / "model.onnx"
        ready: list[PeerProcess] = []
        for name in NAMES:
            try:
                find_kind(name)
            except TensorwrightError:
                continue
            if not path.exists():
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
        results = rotate([_Here(executable, inputs), *ready], _ROUNDS, limit_s=_LIMIT_S)
    ours, *others = results
    if not isinstance(ours, Timing):
        return {"rivals": rivals}
    timed = [values for values in rivals if "reason" not in values]
    for values, result in zip(timed, others, strict=True):
        values |= _against(ours.samples_s, result)
    return {"ours": timing(ours.samples_s), "rivals": rivals}


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
