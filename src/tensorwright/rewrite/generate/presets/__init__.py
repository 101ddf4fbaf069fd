"""The presets: one family of operators a file, each enumerated on its own.

`taso` is one enumeration.  `full` is several, so that operators meet those with which they have
something in common, and the number of pairs stays small.
"""

from __future__ import annotations

from difflib import get_close_matches

from tensorwright.base import UsageError
from tensorwright.rewrite.generate.preset import Preset
from tensorwright.rewrite.generate.presets.batched import BATCHED
from tensorwright.rewrite.generate.presets.elementwise import ELEMENTWISE
from tensorwright.rewrite.generate.presets.grouped import GROUPED
from tensorwright.rewrite.generate.presets.movement import MOVEMENT
from tensorwright.rewrite.generate.presets.normalization import NORMALIZATION
from tensorwright.rewrite.generate.presets.reductions import REDUCTIONS
from tensorwright.rewrite.generate.presets.taso import TASO
from tensorwright.rewrite.generate.presets.windows import WINDOWS

__all__ = ["PRESET_NAMES", "preset_named", "presets_of"]

_PARTS = (
    TASO,
    WINDOWS,
    GROUPED,
    NORMALIZATION,
    BATCHED,
    ELEMENTWISE,
    REDUCTIONS,
    MOVEMENT,
)
_WHOLE = {"taso": (TASO,), "full": _PARTS}
_BY_NAME = {each.name: each for each in _PARTS}
PRESET_NAMES = tuple(dict.fromkeys((*_WHOLE, *_BY_NAME)))
"""What a person may ask for: `taso`, `full`, and each part of `full` alone."""


def presets_of(name: str) -> tuple[Preset, ...]:
    """The enumerations that a name stands for.

    Raises:  UsageError, with the nearest names, if there is none.
    """
    parts = _WHOLE.get(name)
    if parts is not None:
        return parts
    return (preset_named(name),)


def preset_named(name: str) -> Preset:
    """One enumeration by its own name.

    Raises:  UsageError, with the nearest names, if there is none.
    """
    found = _BY_NAME.get(name)
    if found is None:
        near = get_close_matches(name, PRESET_NAMES, n=3)
        raise UsageError(
            stage="rules",
            where=f"preset {name}",
            reason="there is no such preset",
            remedy=f"did you mean {' or '.join(near)}?" if near else ", ".join(PRESET_NAMES),
        )
    return found
