"""The time model from measured programs, and its accuracy on programs that it has not seen.

Training and judging use different networks: one network in five is held out of the model that is
judged. Besides, families of networks, whole targets and machines are left out in turn, to see what
the model learns about operators and machines that were not measured.  These models are thrown away;
the one that is kept is fitted to all networks, as the one that was judged to four fifths of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from tensorwright.machine import Machine
from tensorwright.tuning.models import Forest, lightgbm_grow
from tensorwright.tuning.time_model import Policy, TimeModel, TrainedKeys
from tensorwright_lab.pretraining.conditions import Conditions, MeasuringMachine
from tensorwright_lab.pretraining.programs import (
    Column,
    MeasuredWorkload,
    Programs,
    least_of,
    programs_of,
)
from tensorwright_lab.pretraining.time_loss import (
    ChoiceAccuracy,
    MedianLoss,
    TimeLoss,
    TimeTreeSettings,
    UpperLoss,
    accuracy_of,
    row_slopes,
    weights_of,
)

HELD_OUT = 5
"""One network of this many is held out."""
WITHOUT = "without"
"""Key of a model's statistics: the families, targets and machines that its training left out."""

_FAMILY_GROUPS = 4  # the groups in which families are left out
_UPPER_SHARE = 0.9
_NEVER = 1e3  # log2 of seconds: a program that is not chosen; minus this, one that is


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A workload, the network's seed, and where and under what conditions it was measured."""

    seed: int
    conditions: Conditions
    measuring: MeasuringMachine
    workload: MeasuredWorkload

    @property
    def is_held_out(self) -> bool:
        """Whether it judges."""
        return self.seed % HELD_OUT == 0

    def is_of(self, names: frozenset[str]) -> bool:
        """Whether its family, target or machine is among some names."""
        own = self.workload.family, self.conditions.target_name, self.measuring.fingerprint
        return not names.isdisjoint(own)


@dataclass(frozen=True, slots=True)
class Trained:
    """A time model, and how good its choices are among programs that it has not seen.

    accuracies   what of: accuracy of the roofline, of the rule, of the model, of models that never
                 saw a family, a target or a machine
    """

    model: TimeModel
    accuracies: tuple[tuple[str, ChoiceAccuracy], ...]


def train(
    measured: Sequence[Measured],
    settings: TimeTreeSettings,
    tell: Callable[[str], None] = lambda text: None,
    without: Collection[str] = (),
) -> Trained:
    """Fit two forests to all but the held-out networks and judge them; then fit them to all.

    tell      told in a sentence what is done next
    without   families, targets and machines that are left out; the model is judged on them, too
    Raises:  MachineError where LightGBM cannot be loaded.
    """
    hidden = frozenset(without)
    left_out = [one for one in measured if one.is_of(hidden)]
    measured = [one for one in measured if not one.is_of(hidden)]
    learned = _programs(one for one in measured if not one.is_held_out)
    judged = _programs(one for one in measured if one.is_held_out)
    tell(f"fitting to {len(learned)} programs of {learned.workloads} workloads, to judge")
    median, upper = _fit_both(learned, settings)
    policy = Policy()
    likely, most = _values(median, judged), _values(upper, judged)
    scores = likely + policy.caution * np.maximum(most - likely, 0.0)
    ruled = _programs(one for one in measured if one.is_held_out and one.workload.default >= 0)
    accuracies = [
        ("roofline", accuracy_of(judged, judged.total(np.zeros(len(judged.base)))[0])),
        ("rule", accuracy_of(ruled, np.where(ruled.is_default, -_NEVER, ruled.log2_s))),
        ("model", accuracy_of(judged, likely, _with_margins(judged, scores, policy))),
    ]
    if left_out:
        unseen = _programs(left_out)
        accuracies.append((_without(without), accuracy_of(unseen, _values(median, unseen))))
    else:
        accuracies += _left_out(measured, settings, tell)
    everything = _programs(measured)
    tell(f"fitting to all {len(everything)} programs of {everything.workloads} workloads")
    median_trees, upper_trees = (forest.rounded for forest in _fit_both(everything, settings))
    statistics = _statistics(measured, settings, accuracies) | {WITHOUT: sorted(without)}
    trained = TrainedKeys.of(one.workload.key for one in measured)
    model = TimeModel(median_trees, upper_trees, policy, statistics, trained)
    return Trained(model, tuple(accuracies))


def _with_margins(programs: Programs, scores: Column, policy: Policy) -> Column:
    """The schedule by rule is left only for one that is better by so much, and that the roofline
    takes to be hardly slower.
    """
    roofline = programs.total(np.zeros(len(programs.base)))[0]
    by_rule = np.where(programs.is_default, roofline, np.inf)
    most = least_of(programs.groups, by_rule)[programs.groups] + policy.roofline_margin
    return np.where(roofline > most, _NEVER, scores - policy.margin * programs.is_default)


def _left_out(
    measured: Sequence[Measured], settings: TimeTreeSettings, tell: Callable[[str], None]
) -> list[tuple[str, ChoiceAccuracy]]:
    """The accuracy on families, targets and machines of models that saw none of them."""
    families = sorted({one.workload.family for one in measured})
    targets = sorted({one.conditions.target_name for one in measured})
    machines = sorted({one.measuring.fingerprint for one in measured})
    parts: list[frozenset[str]] = []
    for number in range(_FAMILY_GROUPS if len(families) >= _FAMILY_GROUPS else 0):
        group = frozenset(families[number::_FAMILY_GROUPS])
        parts.append(group)
    for names_of_kind in (targets, machines):
        parts += [frozenset({name}) for name in names_of_kind if len(names_of_kind) > 1]
    accuracies: list[tuple[str, ChoiceAccuracy]] = []
    for names in parts:
        tell(f"fitting {_without(names)}")
        learned = _programs(one for one in measured if not one.is_held_out and not one.is_of(names))
        judged = _programs(one for one in measured if one.is_of(names))
        forest = _fit(learned, MedianLoss(), settings)
        accuracies.append((_without(names), accuracy_of(judged, _values(forest, judged))))
    return accuracies


def _without(names: Collection[str]) -> str:
    return f"without {', '.join(sorted(names))}"


def _programs(measured: Iterable[Measured]) -> Programs:
    machines: dict[tuple[Conditions, str], Machine] = {}
    pairs: list[tuple[MeasuredWorkload, Machine]] = []
    for one in measured:
        key = one.conditions, one.measuring.fingerprint
        if key not in machines:
            machines[key] = one.measuring.under(one.conditions)
        pairs.append((one.workload, machines[key]))
    return programs_of(pairs)


def _fit_both(programs: Programs, settings: TimeTreeSettings) -> tuple[Forest, Forest]:
    """The forest of the median, and that of the upper limit."""
    upper = replace(settings, rounds=settings.rounds // 2)
    return (
        _fit(programs, MedianLoss(), settings),
        _fit(programs, UpperLoss(_UPPER_SHARE), upper),
    )


def _fit(programs: Programs, loss: TimeLoss, settings: TimeTreeSettings) -> Forest:
    """Trees that, added to the base of each statement, make the loss of the programs small.

    Equal arguments give equal trees, whatever the number of threads.
    """
    weights = weights_of(programs)

    def slopes(values: Any, _: Any) -> Any:
        predicted, shares = programs.total(values)
        return row_slopes(programs, shares, loss.slopes(programs, weights, predicted))

    more = {"min_sum_hessian_in_leaf": 0.01, "num_threads": settings.threads}
    return lightgbm_grow("time model")(programs.rows, slopes, settings, more)


def _values(forest: Forest, programs: Programs) -> Column:
    """log2 of the seconds that trees predict, as `program_scores` (programs,)."""
    values = forest.sums(programs.rows)
    return programs.total(np.maximum(values, programs.floor - programs.base))[0]


def _statistics(
    measured: Sequence[Measured],
    settings: TimeTreeSettings,
    accuracies: Sequence[tuple[str, ChoiceAccuracy]],
) -> dict[str, Any]:
    """The statistics of a training, as plain data."""
    counts: dict[str, int] = {}
    families: dict[str, int] = {}
    for one in measured:
        programs = len(one.workload.counts)
        counts[str(one.conditions)] = counts.get(str(one.conditions), 0) + programs
        families[one.workload.family] = families.get(one.workload.family, 0) + programs
    return {
        "workloads": len(measured),
        "programs": sum(counts.values()),
        "held_out": f"1 network of {HELD_OUT}",
        "conditions": dict(sorted(counts.items())),
        "families": dict(sorted(families.items())),
        "settings": asdict(settings),
        "accuracy": {name: asdict(one) for name, one in accuracies},
    }
