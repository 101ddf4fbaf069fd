"""The presets: one family of operators a file, each enumerated on its own.

    presets_of("taso")        (RELEASED, WINDOWS)
    presets_of("windows")     (WINDOWS,)
    presets_of("window")      UsageError: did you mean windows?

`taso` is two enumerations: `released` has the inputs and operators of TASO's released generator,
`windows` what the paper's Table 1 has besides.  `full` adds families of further operators: each
operator meets those with which it has something in common, so that there are few pairs.
"""

from __future__ import annotations

from difflib import get_close_matches

from tensorwright.base import UsageError
from tensorwright.rewriting.generate.preset import Preset
from tensorwright.rewriting.generate.presets.batched import BATCHED
from tensorwright.rewriting.generate.presets.elementwise import ELEMENTWISE
from tensorwright.rewriting.generate.presets.grouped import GROUPED
from tensorwright.rewriting.generate.presets.movement import MOVEMENT
from tensorwright.rewriting.generate.presets.normalization import NORMALIZATION
from tensorwright.rewriting.generate.presets.pointwise import POINTWISE
from tensorwright.rewriting.generate.presets.reductions import REDUCTIONS
from tensorwright.rewriting.generate.presets.released import RELEASED
from tensorwright.rewriting.generate.presets.volumes import VOLUMES
from tensorwright.rewriting.generate.presets.windows import WINDOWS

__all__ = ["PRESET_NAMES", "preset_named", "presets_of"]

_PARTS = (
    RELEASED,
    WINDOWS,
    GROUPED,
    NORMALIZATION,
    BATCHED,
    ELEMENTWISE,
    POINTWISE,
    REDUCTIONS,
    MOVEMENT,
    VOLUMES,
)
_WHOLE = {"taso": (RELEASED, WINDOWS), "full": _PARTS}
_BY_NAME = {each.name: each for each in _PARTS}
PRESET_NAMES = tuple(dict.fromkeys((*_WHOLE, *_BY_NAME)))
"""What a person may ask for: `taso`, `full`, and each part alone."""


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
