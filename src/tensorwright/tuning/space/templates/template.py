"""The protocol of a template, the registered templates of users, and sketches from templates."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tensorwright import base
from tensorwright.expr import Decision
from tensorwright.schedule import ScheduleState
from tensorwright.tuning.space.derived.device_limits import keep_to_device
from tensorwright.tuning.space.knobs import Entity, Knob
from tensorwright.tuning.space.sketch import Registered, Sketch, SketchBuilder
from tensorwright.tuning.space.templates.configuration import Configuration

MOST_STRUCTURES = 128  # combinations of structural knobs: each is lowered by itself

Schedule = Callable[[SketchBuilder, Configuration], bool | None]
Applies = Callable[[ScheduleState, Any], bool]


@dataclass(frozen=True, slots=True)
class Template:
    """Schedules of one kind of program: a function with named knobs, written by a person.

    schedule   takes the steps, on a builder, by the knobs that it names in a configuration; a step
               that is illegal, or False as its answer, leaves a combination of structural knobs out
    applies    for which programs it is asked
    is_other_algorithm   whether it computes something by another algorithm: rounding differs
    """

    name: str
    schedule: Schedule
    applies: Applies
    is_other_algorithm: bool = False

    def sketches(self, state: ScheduleState, target: base.Target) -> Iterator[Sketch]:
        """A sketch for each combination of its structural knobs, that by rule first.

        Warns:   where all of them take illegal steps.
        Raises:  UsageError if there are too many, and as `Configuration`.
        """
        taken: tuple[int, ...] | None = ()
        error: base.ScheduleError | None = None
        runs = made = 0
        while taken is not None:
            runs += 1
            if runs > MOST_STRUCTURES:
                raise base.UsageError(
                    stage="tune",
                    where=f"template {self.name}",
                    reason=f"its structural knobs have more than {MOST_STRUCTURES} combinations",
                    remedy="give candidates, or let numbers stay open",
                )
            builder = SketchBuilder(state)
            cfg = Configuration(builder, target, taken)
            try:
                is_wanted = self.schedule(builder, cfg) is not False
                if is_wanted and isinstance(target, base.GpuTarget):
                    is_wanted = keep_to_device(builder, target, keeps_soft=False)
            except base.ScheduleError as illegal:
                error, is_wanted = error or illegal, False
            if is_wanted:
                made += 1
                yield self._sketch(builder, cfg)
            taken = cfg.following
        if error is not None and not made:
            text = f"template {self.name} has no legal schedule for {', '.join(state.outputs)}"
            warnings.warn(f"{text}: {error.message()}", RuntimeWarning, stacklevel=2)

    def _sketch(self, builder: SketchBuilder, cfg: Configuration) -> Sketch:
        """The sketch of a run; choices that were made without the configuration are knobs, too."""
        named = {name for knob in cfg.knobs for name in knob.decisions}
        others = [
            Knob(name, Entity.OTHER, Decision(name))
            for choice in builder.choices
            for name in choice.names
            if name not in named
        ]
        name = "; ".join((self.name, *(str(knob) for knob in cfg.structural)))
        return builder.sketch(name, self.name, (*cfg.knobs, *others))


_OWN: Registered[Template] = Registered("template")


def register_template(template: Template) -> Template:
    """Register your own template, which is asked before those of the package.

    The same function again, from a file or a cell that was run again, replaces the old one.

    Raises:  UsageError if another one of that name is registered.
    """
    return _OWN.add(template, _origin)


def _origin(template: Template) -> tuple[str, str]:
    """The module and the name of the function of a template."""
    schedule = template.schedule
    return getattr(schedule, "__module__", ""), getattr(schedule, "__qualname__", "")


def unregister_template(name: str) -> None:
    """Forget a registered template.  Raises: UsageError if there is none of that name."""
    _OWN.remove(name)


def own_templates() -> tuple[Template, ...]:
    """The templates that have been registered, in order."""
    return _OWN.all


def template(applies: Applies) -> Callable[[Schedule], Template]:
    """Register a function as a template for the programs of which `applies` says so.

    Example:  @template(applies=lambda state, target: state.outputs == ("scores",))
              def scores_in_rows(s, cfg): ...
    """

    def register(schedule: Schedule) -> Template:
        name = getattr(schedule, "__name__", "template")
        return register_template(Template(name, schedule, applies))

    return register
