"""Builders and runners for the laboratory: this machine, or the workers of a farm."""

from __future__ import annotations

from contextlib import ExitStack

from tensorwright.base import Target, UsageError
from tensorwright.farm import Farm
from tensorwright.machine import detect_hardware
from tensorwright.tuning.measuring import Builder, ChildRunner, MeasureOptions, PoolBuilder, Runner
from tensorwright.tuning.on_farm import FarmBuilder, FarmRunner, kind_for


def builder_of(farm: Farm | None, owned: ExitStack, limit_s: float) -> Builder:
    """A builder that `owned` closes; each build has a limit in seconds on this machine."""
    if farm is None:
        return owned.enter_context(PoolBuilder(limit_s=limit_s))
    builder = FarmBuilder(farm)
    owned.callback(builder.close)
    return builder


def runner_of(
    farm: Farm | None, owned: ExitStack, target: Target, options: MeasureOptions
) -> Runner:
    """A runner that `owned` closes.  What a farm measures must be fit to be compared with this
    machine: only devices of its kind do.

    Raises:  MachineError if no worker has a device; UsageError if it is of another kind.
    """
    if farm is None:
        return owned.enter_context(ChildRunner(options))
    kind, here = kind_for(farm, target).kind, detect_hardware().fingerprint
    if kind != here:
        raise UsageError(
            stage="farm",
            where="devices of the farm",
            reason=f"they are {kind}, this machine is {here}: the rows would be of two machines",
            remedy="give the command on a machine of the kind of the devices",
        )
    return FarmRunner(farm, kind, target, options)
