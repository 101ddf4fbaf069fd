"""The units of a level: what the work folder keeps is not done again.

units = LevelUnits(folder, farm, say, level=3)
names = units.complete("words", shards, efforts)       words-3-0, words-3-1, ...
folder.unit(names[0])                                  what the first one gave
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tensorwright.farm import Farm, Payload, Unit
from tensorwright_lab.rule_generation.answers import CALLER, answers
from tensorwright_lab.rule_generation.enumerate.checkpoint import WorkFolder
from tensorwright_lab.rule_generation.progress import Meter, Say

_FEW = 1e5
"""Units of less effort together are not worth other processes."""
_LIMIT_S = 600.0


@dataclass(frozen=True, slots=True)
class LevelUnits:
    """Does the units of a level by steps, and keeps what they give."""

    folder: WorkFolder
    farm: Farm
    say: Say
    level: int

    def complete(
        self,
        step: str,
        make: Callable[[int], Payload],
        efforts: Sequence[float],
        name: str = "",
    ) -> list[str]:
        """Do all units of a step that are not kept yet; the names under which they are.

        step     the function is `rules.STEP`
        make     the payload of a unit by its number, when its turn comes
        efforts  of the units, in about microseconds
        name     of their answers; that of the step if not given
        """
        label = name or step
        names = [f"{label}-{self.level}-{number}" for number in range(len(efforts))]
        waiting = [at for at, name in enumerate(names) if not self.folder.has_unit(name)]
        waiting.sort(key=efforts.__getitem__, reverse=True)  # the last ones should end together
        remaining = sum(efforts[at] for at in waiting)
        total = sum(efforts)
        meter = Meter(self.say, f"level {self.level}, {label}", total, total - remaining)
        farm = self.farm if remaining > _FEW else CALLER
        units = (Unit(f"rules.{step}", make(at), _LIMIT_S) for at in waiting)
        for at, answer in answers(farm, units):
            self.folder.save_unit(names[waiting[at]], answer)
            meter.add(efforts[waiting[at]])
        return names
