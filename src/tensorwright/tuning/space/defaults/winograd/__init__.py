"""Convolutions of 3x3 taps by Winograd's algorithm. Read `sketches.py` first."""

from tensorwright.tuning.space.defaults.winograd.axes import Portion
from tensorwright.tuning.space.defaults.winograd.sketches import (
    VARIANTS,
    schedule_winograd,
    winograd_anchor,
    winograd_sketches,
)

__all__ = ["VARIANTS", "Portion", "schedule_winograd", "winograd_anchor", "winograd_sketches"]
