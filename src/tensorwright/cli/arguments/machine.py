"""Warn once if the machine is not fit for measurements, and continue.

The options of commands that hand out work: to a farm, or to processes of this machine.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click

from tensorwright import farm
from tensorwright.base import CpuTarget, Target
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


OpenFarm = Callable[[], farm.Farm]
"""Opens the farm that does the units of a command: processes of this machine, or workers."""


@dataclass(frozen=True, slots=True)
class Workers:
    """Who builds and measures: the workers of a farm, or this machine if the address is ""."""

    address: str
    security: farm.FarmSecurity

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


def workers_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --workers, --keys and --insecure; the command gets `workers`, of type `Workers`."""

    @security_options
    @click.option(
        "--workers",
        "address",
        default="",
        metavar="ADDRESS",
        help="Build and measure on a farm: tcp://HOST:PORT of its scheduler, or ssh://HOST,...",
    )
    @wraps(command)
    def with_workers(*args: Any, address: str, security: farm.FarmSecurity, **kwargs: Any) -> Any:
        return command(*args, workers=Workers(address, security), **kwargs)

    return with_workers


def farm_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --processes, --workers, --keys and --insecure; the command gets `open_farm`."""

    @click.option(
        "--processes",
        default=2,
        show_default=True,
        type=click.IntRange(1),
        help="Processes of this machine that do the work.",
    )
    @click.option(
        "--workers",
        "address",
        metavar="ADDRESS",
        help="The scheduler of a farm whose workers do the work, tcp://HOST:PORT.",
    )
    @security_options
    @wraps(command)
    def with_workers(
        *args: Any, processes: int, address: str | None, security: farm.FarmSecurity, **kwargs: Any
    ) -> Any:
        def open_farm() -> farm.Farm:
            return farm.LocalFarm(processes) if address is None else farm.connect(address, security)

        return command(*args, open_farm=open_farm, **kwargs)

    return with_workers


def security_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --keys and --insecure; the command gets `security`."""

    @click.option(
        "--keys",
        type=click.Path(path_type=Path),
        metavar="FOLDER",
        help="The keys of the farm, made by `tensorwright farm keys`.",
    )
    @click.option(
        "--insecure", is_flag=True, help="Go on without keys even if the network can listen."
    )
    @wraps(command)
    def with_security(*args: Any, keys: Path | None, insecure: bool, **kwargs: Any) -> Any:
        return command(*args, security=farm.FarmSecurity(keys, insecure), **kwargs)

    return with_security
