"""Numbers of reports, rounded, as plain JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Any

from tensorwright.runtime.measuring import faster_half
from tensorwright.tuning.session import Comparison

_DIGITS = 5
LATE = "the seconds for the report were spent"
"""Why a measurement of a report is missing."""

Values = dict[str, Any]
"""An object of JSON: text, numbers, lists and objects."""


def short(number: float | None) -> float | None:
    """A number with five digits; None if it is not finite, because JSON has no such numbers."""
    if number is None or not math.isfinite(number):
        return None
    return float(f"{number:.{_DIGITS}g}")


def micro(seconds: float | None) -> float | None:
    """Seconds as microseconds, with five digits."""
    return None if seconds is None else short(seconds * 1e6)


def timing(samples_s: Sequence[float]) -> Values:
    """The typical time of some turns, and the range of the faster half, as microseconds."""
    half = faster_half(samples_s)
    return {"time_us": micro(median(half)), "least_us": micro(half[0]), "most_us": micro(half[-1])}


def comparison_values(compared: Comparison) -> Values:
    """The times of the untuned and the tuned schedule in turns."""
    return {
        "untuned_us": micro(compared.untuned_s),
        "tuned_us": micro(compared.tuned_s),
        "speed_up": short(compared.speed_up),
        "least": short(compared.least),
        "most": short(compared.most),
        "is_same": compared.is_same,
        "is_sure": compared.is_sure,
    }
