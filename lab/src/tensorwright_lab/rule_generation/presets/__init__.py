"""The presets: one family of operators a file, each enumerated on its own.

    presets_of("taso")        the presets of released.preset and windows.preset
    presets_of("windows")     that of windows.preset
    presets_of("window")      UsageError: did you mean windows?

`taso` is two enumerations: `released` has the inputs and operators of TASO's released generator,
`windows` what the paper's Table 1 has besides.  `full` adds families of further operators: each
operator meets those with which it has something in common, so that there are few pairs.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tensorwright.base import unknown_name
from tensorwright_lab.rule_generation.preset import Preset, parse_preset


_PARTS = (
    "released",
    "windows",
    "grouped",
    "normalization",
    "batched",
    "elementwise",
    "pointwise",
    "reductions",
    "movement",
    "volumes",
)
_WHOLE = {"taso": ("released", "windows"), "full": _PARTS}
PRESET_NAMES = (*_WHOLE, *_PARTS)
"""What a person may ask for: `taso`, `full`, and each part alone."""


def presets_of(name: str) -> tuple[Preset, ...]:
    """The enumerations that a name stands for.

    Raises:  UsageError, with the nearest names, if there is none.
    """
    return tuple(map(preset_named, _WHOLE.get(name, (name,))))


@cache
def preset_named(name: str) -> Preset:
    """One enumeration by its own name.

    Raises:  UsageError, with the nearest names, if there is none.
    """
    if name not in _PARTS:
        where = f"preset {name}"
        raise unknown_name("rules", where, "there is no such preset", name, PRESET_NAMES)
    path = Path(__file__).parent / f"{name}.preset"
    return parse_preset(name, path.read_text(encoding="utf-8"))
