"""What AutoTVM's experiments on this machine are made of: workloads, ways to search, their order.

Searches are ordered seed by seed, and within a seed experiment by experiment: wherever a run stops,
what it has compares all ways to search on equal seeds, but for the comparison it was at.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean, median

from lab.searches import Curve

from tensorwright.tuning.space import SpaceKind
from tensorwright_lab.zoo import OperatorCase


def _convolution(
    size: int, inputs: int, outputs: int, kernel: int = 3, stride: int = 1
) -> OperatorCase:
    padding = kernel // 2
    fields = {"batch": 1, "height": size, "width": size, "in_channels": inputs}
    fields |= {"out_channels": outputs, "kernel": kernel, "stride": stride, "padding": padding}
    places = ((size + 2 * padding - kernel) // stride + 1) ** 2
    gflop = 2e-9 * places * inputs * outputs * kernel**2
    return OperatorCase("C2D", 0, tuple(fields.items()), gflop)


def _product(size: int) -> OperatorCase:
    fields = {"batch": 1, "rows": size, "columns": size, "inner": size}
    return OperatorCase("GMM", 0, tuple(fields.items()), 2e-9 * size**3)


RESNET: Mapping[str, OperatorCase] = {
    f"R{number}": case
    for number, case in enumerate(
        (
            _convolution(224, 3, 64, 7, 2),
            _convolution(56, 64, 64),
            _convolution(56, 64, 64, 1),
            _convolution(56, 64, 128, 3, 2),
            _convolution(56, 64, 128, 1, 2),
            _convolution(28, 128, 128),
            _convolution(28, 128, 256, 3, 2),
            _convolution(28, 128, 256, 1, 2),
            _convolution(14, 256, 256),
            _convolution(14, 256, 512, 3, 2),
            _convolution(14, 256, 512, 1, 2),
            _convolution(7, 512, 512),
        ),
        1,
    )
}
"""The convolutions of ResNet-18."""

WORKLOADS: Mapping[str, OperatorCase] = {
    "C12": _convolution(7, 512, 512),
    "C7": _convolution(28, 256, 128, 3, 2),
    "GMM512": _product(512),
    "GMM1024": _product(1024),
    **RESNET,
}


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to search.  As it stands here, it is AutoTVM's.

    before   the workload whose search, in the same way, gives the model to start from
    """

    features: str = "itervar"
    strategy: str = "annealing-vanilla"
    model: str = "trees-pairs"
    space: SpaceKind = SpaceKind.TEMPLATES
    before: str = ""


AS_AUTOTVM = Variant()
OURS = Variant(features="statement", strategy="evolution")


@dataclass(frozen=True, slots=True)
class Experiment:
    """Ways to search that are compared on some workloads.

    quick     the names of the ways, and the workloads, of a quick run
    share     of the trials that other experiments have
    """

    subjects: tuple[str, ...]
    variants: Mapping[str, Variant]
    quick: tuple[tuple[str, ...], tuple[str, ...]]
    share: float = 1.0


def _paired(relations: str) -> Variant:
    return Variant(features=f"curve-paired:{relations}")


_BOTH = ("C12", "C7")
_ALL = (*_BOTH, "GMM512", "GMM1024")
_PUBLISHED = ("knob", "itervar", "curve", "curve-fix")

EXPERIMENTS: Mapping[str, Experiment] = {
    "features": Experiment(
        _BOTH,
        {name: Variant(features=name) for name in (*_PUBLISHED, "curve-paired", "statement")},
        ((*_PUBLISHED, "curve-paired"), _BOTH),
    ),
    "relations": Experiment(
        _BOTH,
        {
            "count/reuse": _paired("count/reuse"),
            "count/topdown": _paired("count/topdown"),
            "count/bottomup": _paired("count/bottomup"),
            "count/reuse, /topdown": _paired("count/reuse,count/topdown"),
            "count/reuse, /bottomup": _paired("count/reuse,count/bottomup"),
            "count>reuse, >bottomup": _paired("count>reuse,count>bottomup"),
            "all three": Variant(features="curve-paired"),
        },
        (("count/reuse", "count/topdown", "count/bottomup", "all three"), _BOTH),
    ),
    "annealing": Experiment(
        _ALL,
        {
            "vanilla": AS_AUTOTVM,
            "vanilla, regression": Variant(model="trees-squares"),
            "mended": Variant(strategy="annealing"),
            "genetic": Variant(strategy="genetic"),
            "random": Variant(strategy="random"),
        },
        (("vanilla", "mended"), _BOTH),
    ),
    "transfer": Experiment(
        ("C7",),
        {
            "itervar": AS_AUTOTVM,
            "itervar, from C12": Variant(before="C12"),
            "context": Variant(features="context", strategy="annealing"),
            "context, from C12": Variant("context", "annealing", before="C12"),
            "statement": Variant(features="statement", strategy="annealing"),
            "statement, from C12": Variant("statement", "annealing", before="C12"),
        },
        (("itervar", "itervar, from C12", "context", "context, from C12"), ("C7",)),
    ),
    "spaces": Experiment(
        _ALL,
        {
            "templates, AutoTVM": AS_AUTOTVM,
            "templates": OURS,
            "sketches": Variant("statement", "evolution", space=SpaceKind.SKETCHES),
            "sketches, AutoTVM": Variant(space=SpaceKind.SKETCHES),
            "both": Variant("statement", "evolution", space=SpaceKind.BOTH),
        },
        (("templates, AutoTVM", "templates", "sketches"), _BOTH),
    ),
    "resnet": Experiment(
        tuple(RESNET),
        {name: Variant(features=name) for name in (*_PUBLISHED, "curve-paired")},
        ((), ()),
        share=0.5,
    ),
}
ENDS = 4  # of the fastest programs of a search, which are measured again
REFERENCE = "templates, AutoTVM"  # of "spaces": whose last speed is to be reached, and how soon


@dataclass(frozen=True, slots=True)
class Job:
    """One search of a plan."""

    seed: int
    experiment: str
    subject: str
    variant: str
    trials: int

    @property
    def how(self) -> Variant:
        """The way to search."""
        return EXPERIMENTS[self.experiment].variants[self.variant]

    @property
    def work(self) -> tuple[Variant, str, int, int]:
        """Equal for searches that do the same, in whatever experiment they are."""
        return self.how, self.subject, self.seed, self.trials


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is run: searches with so many seeds, of so many trials.

    only   the ways to search, of experiments that have one of them
    """

    seeds: int
    trials: int
    is_quick: bool = False
    only: tuple[str, ...] = ()

    def variants(self, experiment: str) -> Sequence[str]:
        """The ways to search of an experiment."""
        found = EXPERIMENTS[experiment]
        usual = found.quick[0] if self.is_quick else tuple(found.variants)
        return tuple(name for name in usual if name in self.only) or usual

    def subjects(self, experiment: str) -> Sequence[str]:
        """The workloads of an experiment."""
        found = EXPERIMENTS[experiment]
        return found.quick[1] if self.is_quick else found.subjects

    def trials_of(self, experiment: str) -> int:
        """The trials of each search of an experiment."""
        return max(1, round(EXPERIMENTS[experiment].share * self.trials))

    def jobs(self, experiments: Sequence[str], seed: int) -> Iterator[Job]:
        """The searches of a seed, in order."""
        for experiment in experiments:
            for subject in self.subjects(experiment):
                for variant in self.variants(experiment):
                    yield Job(seed, experiment, subject, variant, self.trials_of(experiment))


@dataclass(frozen=True, slots=True)
class Run:
    """A search that ended: its curve, and what share of its trials failed.

    fastest  its fastest programs, as they were measured once: `ENDS` of them, the best first
    took_s   seconds that it took here; a search that another one had done took none
    """

    experiment: str
    curve: Curve
    failed: float
    fastest: tuple[str, ...]
    trials: int
    took_s: float = field(default=0.0, compare=False)

    @property
    def job(self) -> Job:
        """What was to be done."""
        curve = self.curve
        return Job(curve.seed, self.experiment, curve.subject, curve.variant, self.trials)

    def speed(self, gflop: float, trials: int) -> float:
        """GFLOP/s of the best program after so many trials."""
        return gflop / self.curve.at(trials)

    def again(self, times_s: Mapping[str, float]) -> float:
        """The best time of its fastest programs, by times of programs that took turns."""
        return min((times_s.get(each, math.inf) for each in self.fastest), default=math.inf)


def compared(plan: Plan, runs: Sequence[Run]) -> list[Run]:
    """The runs of seeds for which all ways to search a workload have ended."""
    done: dict[tuple[str, str, int], set[str]] = {}
    for run in runs:
        key = run.experiment, run.curve.subject, run.curve.seed
        done.setdefault(key, set()).add(run.curve.variant)
    return [
        run
        for run in runs
        if done[run.experiment, run.curve.subject, run.curve.seed]
        >= set(plan.variants(run.experiment))
    ]


def seconds_left(jobs: Sequence[Job], runs: Sequence[Run]) -> float | None:
    """About how long some searches will take; None where nothing is known yet.

    A search takes what others took in the same way, per trial; where none did, what all took.
    Equal ones count once.
    """
    took: dict[Variant, list[float]] = {}
    for run in runs:
        if run.took_s:
            took.setdefault(run.job.how, []).append(run.took_s / run.trials)
    if not took:
        return None
    usual = mean(median(each) for each in took.values())
    work = {job.work: job for job in jobs}.values()
    return sum(job.trials * median(took.get(job.how, [usual])) for job in work)
