"""The time model of a target: trained trees for processors, a page of formulas for cards.

The time model of graphics processors: seconds of a program, before anything was measured.

A launch takes as long as its slowest part, and a little of the second slowest:

    program = sum over launches of (start + launch)
    launch  = max(multiprocessor, second cache, memory)
    multiprocessor = norm(work, waiting)          cycles of the one that has most blocks
      work    = its blocks * block                block = max(instructions / rate, near memory)
      waiting = rounds of resident blocks * (block + what a block waits if it is alone: turns of
                loops * (latency of loads / loads under way + additions in a chain), operations
                that find places, which wait for each other, and barriers)
    second cache, memory = bytes / rate, of the different lines of each block, and of all of them

So many small blocks of long reductions wait, few large ones leave multiprocessors idle, and what
fetches little for much arithmetic is near the peak.

Source:  the draft model of Zhang et al., Pruner, arXiv 2402.02361, section 4 (arithmetic and
         memory of each statement, slowed by the share of warps and waves), with waiting added as in
         Hong and Kim, An Analytical Model for a GPU Architecture, ISCA 2009.

The time model that comes with the package, or the one that the knob `time_model` names.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tensorwright import base
from tensorwright.machine import Card, Machine
from tensorwright.tuning.features import GPU_FEATURE_NAMES, SECTOR_BYTES
from tensorwright.tuning.models import CostModel, Features, Scores
from tensorwright.tuning.time_model.model import Policy, Prediction, TimeModel, load_time_model

_OPERATIONS = {  # instructions of a thread
    "float_mad": 1.0,
    "float_addsub": 1.0,
    "float_mul": 1.0,
    "float_divmod": 10.0,
    "float_cmp": 1.0,
    "float_mathfunc": 10.0,
    "float_otherfunc": 2.0,
    "int_addsub": 1.0,
    "int_mul": 1.0,
    "select_op": 1.0,
}
_OF_LAUNCH = ("blocks", "threads", "registers", "resident_blocks", "barriers")
_USED = (
    *_OPERATIONS,
    *_OF_LAUNCH,
    "launch",
    "lane_share",
    "straight_runs",
    "waiting_runs",
    "meeting_runs",
    "index_operations",
    "more_barriers",
    "block_bytes",
    "dram_bytes",
    "global_loads",
    "global_stores",
    "global_sectors",
    "shared_loads",
    "shared_stores",
    "shared_sectors",
    "shared_wavefronts",
)
_PLACES = np.array([GPU_FEATURE_NAMES.index(name) for name in _USED])
_MOST_REGISTERS = 255.0  # of a thread: more lie in memory
_NORM = 3.0
_WAYS = ("loads", "stores")

_Column = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LaunchTimes:
    """An analytic model with the interface of `TimeModel`; its upper estimate is the median."""

    policy: Policy = field(default_factory=lambda: Policy(0.0, 0.02, 0.0, 10.0))

    @property
    def digest(self) -> str:
        """As of `AnyTimeModel`; the keys of caches contain the sources of its formulas."""
        return repr(self)

    def predict(self, features: Features, machine: Card) -> Prediction:
        """The times of programs.  Shapes:  features (programs, statements, features)."""
        seconds = np.log2(launch_seconds(features, machine))
        return Prediction(seconds, seconds, seconds)


def launch_seconds(features: Features, card: Card) -> _Column:
    """Seconds of programs.  Shapes:  features (programs, statements, features) -> (programs,)."""
    plain = np.exp2(np.moveaxis(features[..., _PLACES], -1, 0).astype(np.float64)) - 1.0
    given = dict(zip(_USED, plain, strict=True))
    statements = (
        _issue_cycles(given, card),
        _memory_cycles(given, card),
        _waits(given, card),
        given["block_bytes"],
        given["dram_bytes"],
    )
    launches = np.rint(given["launch"][0]).astype(int)
    seconds = np.zeros(len(features))
    for number in np.unique(launches):
        own = launches == number
        first = int(np.argmax(own))
        shared = {name: given[name][:, first] for name in _OF_LAUNCH}
        shared["barriers"] = shared["barriers"] + given["more_barriers"][:, own].sum(1)
        seconds += _launch_seconds(shared, [each[:, own].sum(1) for each in statements], card)
    return seconds


def _launch_seconds(launch: Mapping[str, _Column], sums: Sequence[_Column], card: Card) -> _Column:
    """Seconds of a launch.

    sums   of its statements: cycles of instructions and of near memory, of all blocks; cycles that
           one thread waits; bytes of blocks, and of the launch
    """
    issue, near, waits, block_bytes, dram_bytes = sums
    unit, bandwidth = card.unit, card.target.bandwidth
    blocks, resident = (np.maximum(launch[each], 1.0) for each in ("blocks", "resident_blocks"))
    most = np.ceil(blocks / card.units)  # blocks of the multiprocessor that has most
    spills = np.maximum(launch["registers"] / _MOST_REGISTERS, 1.0) ** 2
    for_threads = launch["barriers"] * unit.barrier_thread_cycles * launch["threads"]
    each = np.maximum(issue, near) / blocks * spills + for_threads
    alone = each + waits + launch["barriers"] * unit.barrier_cycles + unit.block_cycles
    work, waiting = most * each, np.ceil(most / resident) * alone
    busy_s = (work**_NORM + waiting**_NORM) ** (1.0 / _NORM) / card.clock_hz
    memory_s = np.maximum(dram_bytes, block_bytes / unit.cache_rate) / bandwidth
    seconds: _Column = unit.launch_s + np.maximum(busy_s, memory_s)
    return seconds


def _issue_cycles(given: Mapping[str, _Column], card: Card) -> _Column:
    """Cycles in which a multiprocessor would start the instructions of all warps of a statement."""
    operations = sum(cost * given[name] for name, cost in _OPERATIONS.items())
    lanes = np.maximum(given["lane_share"] * card.target.warp, 1.0)  # that run in a warp
    moves = sum(given[f"{where}_{way}"] for where in ("global", "shared") for way in _WAYS)
    instructions = (operations + given["index_operations"]) / lanes + moves
    cycles: _Column = instructions * card.target.warp / card.lanes
    return cycles


def _memory_cycles(given: Mapping[str, _Column], card: Card) -> _Column:
    """Cycles in which the memory near a multiprocessor would serve them."""
    unit = card.unit
    cycles: _Column = (
        unit.sector_cycles * given["global_sectors"]
        + unit.shared_sector_cycles * given["shared_sectors"]
        + unit.wavefront_cycles * given["shared_wavefronts"]
    )
    return cycles


def _waits(given: Mapping[str, _Column], card: Card) -> _Column:
    """Cycles that a thread of a statement waits for loads and sums, alone on a multiprocessor."""
    unit = card.unit
    near, cache, memory = unit.latencies
    asked = np.maximum(given["global_sectors"], 1.0) * SECTOR_BYTES
    far = np.minimum(given["block_bytes"] / asked, 1.0)  # of loads that miss the near caches
    fresh = np.minimum(given["dram_bytes"] / np.maximum(given["block_bytes"], 1.0), 1.0)
    of_global = near + far * (cache - near + fresh * (memory - cache))
    of_shared = np.where(given["shared_loads"] > 0, unit.shared_latency, 0.0)
    loads = np.where(given["global_loads"] > 0, of_global, of_shared)
    adds = np.where(given["float_mad"] + given["float_addsub"] > 0, unit.add_latency, 0.0)
    threads = np.maximum(given["blocks"] * given["threads"], 1.0)
    places = unit.index_latency * given["index_operations"] / threads
    rounds = np.maximum(given["waiting_runs"] / unit.loads_at_once, given["meeting_runs"])
    waits: _Column = rounds * loads + given["straight_runs"] * adds + places
    return waits


PACKAGED = Path(__file__).with_name("pretrained.npz")


def pretrained_model() -> TimeModel | None:
    """The model in force; None, after a warning, for a file that cannot be used.

    A package without a model does not warn: schedules are chosen by heuristic, and reports say so.
    """
    own = base.knobs.TIME_MODEL.get()
    path = own or PACKAGED
    if own is None and not path.exists():
        return None
    try:
        status = path.stat()
        stamp = (status.st_mtime_ns, status.st_size)
    except OSError:
        stamp = (0, 0)
    return _load(path, stamp)


@lru_cache(maxsize=4)
def _load(path: Path, _stamp: tuple[int, int]) -> TimeModel | None:
    """Read and, if that fails, warn once for every state of the file."""
    try:
        return load_time_model(path)
    except base.RecordError as error:
        warnings.warn(
            f"time model {path}: {error.reason}; schedules are chosen by heuristic "
            f"({error.remedy})",
            RuntimeWarning,
            stacklevel=3,
        )
        return None


class AnyTimeModel(Protocol):
    """Predicts times of programs for one kind of machine.  Threads: any number may call it."""

    def __hash__(self) -> int:
        """Of the model, which never changes."""

    @property
    def policy(self) -> Policy:
        """The policy of choosing by its predictions."""

    @property
    def digest(self) -> str:
        """A short text that differs from that of any other model, for the keys of caches."""

    def predict(self, features: Features, machine: Any) -> Prediction:
        """The times of programs, on a machine of its kind.

        Shapes:  features (programs, statements, features) -> (programs,)
        """


TIME_MODELS: base.ByKind[Callable[[], AnyTimeModel | None]] = {
    base.TargetKind.CPU: (pretrained_model,),
    base.TargetKind.GPU: (LaunchTimes,),
}
"""One for each kind; None if the file of trees cannot be used."""


def time_model_of(target: base.TargetProtocol) -> AnyTimeModel | None:
    """The model in force for a target.  Raises: MachineError if its kind has none."""
    (make,) = base.of_kind(TIME_MODELS, target, "time models")
    return make()


@dataclass(frozen=True, slots=True, eq=False)
class PredictedTime(CostModel):
    """A `CostModel`: minus log2 of the seconds predicted for one machine. Learns nothing."""

    model: AnyTimeModel
    machine: Machine | Card

    def predict(self, features: Features) -> Scores:
        """As `CostModel.predict`."""
        predicted = self.model.predict(features, self.machine)
        scores: Scores = -predicted.scores(self.model.policy.caution)
        return scores
