"""Warn once if the machine is not fit for measurements, and continue."""

from __future__ import annotations

import click

from tensorwright.base import CpuTarget, Target
from tensorwright.cli.printing.wrapping import echo_prose
from tensorwright.machine import Load, LoadWatch, MachineState, kept_ceilings
from tensorwright.processes import hold_turn
from tensorwright.runtime.measuring import measure_peak_alone
from tensorwright.tuning.session import Progress

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
