"""Warn once if the machine is not fit for measurements, and continue.

The options of commands that hand out work: to a farm, or to processes of this machine.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

import click

from tensorwright import farm
from tensorwright.base import CpuTarget, Target, option
from tensorwright.cli.arguments.options import record_options
from tensorwright.cli.group import echo_prose
from tensorwright.machine import Load, LoadWatch, MachineState, kept_ceilings
from tensorwright.processes import hold_turn
from tensorwright.runtime.measuring import measure_peak_alone
from tensorwright.tuning.session import Callback, Progress, check_measures_here

_TOLD = "tensorwright.machine_told"
_WATCHED_S = 5.0


def warn_if_unfit(state: MachineState | None) -> None:
    """Print the warning of a state, if it has one; at most one is printed in a run of a command."""
    text = "" if state is None else state.warning
    context = click.get_current_context(silent=True)
    meta = {} if context is None else context.find_root().meta
    if text and not meta.get(_TOLD):
        meta[_TOLD] = True
        echo_prose(f"warning: {text}", err=True)


def check_before_measuring(target: Target, threads: int) -> None:
    """Warn if the machine is busy, or slower than its kept peak.

    A target that is not a processor is not checked, because its peaks are not kept.
    """
    if isinstance(target, CpuTarget):
        warn_if_unfit(check_machine(target, threads))


def check_machine(target: CpuTarget, threads: int) -> MachineState:
    """Measure the present peak and the load of the machine for some tenths of a second.

    Nothing is measured if no peak is kept with which the present one can be compared.
    Raises:  MachineError for a target that the machine cannot run.
    """
    kept = kept_ceilings(target, threads)
    if kept is None:
        return MachineState(Load())
    with hold_turn():
        watch = LoadWatch()
        now = measure_peak_alone(target, threads)
        return MachineState(watch.load(), now, kept)


class LoadCallback:
    """A callback of a session that watches the load of other processes."""

    def __init__(self) -> None:
        self._watch = LoadWatch()

    def on_progress(self, progress: Progress) -> None:
        """Check the load if the last check was some seconds ago."""
        if self._watch.seconds >= _WATCHED_S:
            warn_if_unfit(MachineState(self._watch.load()))
            self._watch = LoadWatch()

    def close(self) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class OpenFarm:
    """Opens the farm that does the units of a command: processes of this machine, or workers."""

    processes: int = option(2, "Processes of this machine that do the work.", least=1)
    address: str | None = option(
        None,
        "The scheduler of a farm whose workers do the work, tcp://HOST:PORT.",
        metavar="ADDRESS",
        spelling="workers",
    )
    security: farm.FarmSecurity = farm.NO_SECURITY

    def __call__(self) -> farm.Farm:
        """The farm, which the caller closes."""
        if self.address is None:
            return farm.LocalFarm(self.processes)
        return farm.connect(self.address, self.security)


@dataclass(frozen=True, slots=True)
class Workers:
    """Who builds and measures: the workers of a farm, or this machine if the address is ""."""

    address: str = option(
        "",
        "Build and measure on a farm: tcp://HOST:PORT of its scheduler, or ssh://HOST,...",
        metavar="ADDRESS",
        spelling="workers",
    )
    security: farm.FarmSecurity = farm.NO_SECURITY

    def opened(self) -> AbstractContextManager[farm.Farm | None]:
        """The farm, open while the block runs; None for this machine."""
        return farm.opened_farm(self.address or None, self.security)

    def check(self, target: Target) -> None:
        """If this machine measures, refuse a target that it cannot measure."""
        if not self.address:
            check_measures_here(target)

    def warn_if_unfit(self, target: Target, threads: int) -> None:
        """If this machine measures, warn if it is not fit for measurements."""
        if not self.address:
            check_before_measuring(target, threads)

    def callbacks(self) -> tuple[Callback, ...]:
        """The callbacks of a session that watch this machine, if this machine measures."""
        return () if self.address else (LoadCallback(),)


THIS_MACHINE = Workers()
farm_options = record_options(OpenFarm, "open_farm")
workers_options = record_options(Workers, "workers")
security_options = record_options(farm.FarmSecurity, "security")
