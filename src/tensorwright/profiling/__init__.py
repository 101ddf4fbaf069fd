"""Where the time of a network goes. Read `report.py` first, then `measure.py` and `roofline.py`."""

from tensorwright.profiling.chrome_trace import chrome_trace
from tensorwright.profiling.devices import DeviceSpeed, measure_speed
from tensorwright.profiling.measure import Samples, make_profile, profile
from tensorwright.profiling.report import FEWER, Profile, StepKind, StepProfile
from tensorwright.profiling.reuse import Operand, operands_of
from tensorwright.profiling.roofline import Bottleneck, Bounds, bottleneck_of, bounds_of
from tensorwright.profiling.values import profile_values

__all__ = [
    "FEWER",
    "Bottleneck",
    "Bounds",
    "DeviceSpeed",
    "Operand",
    "Profile",
    "Samples",
    "StepKind",
    "StepProfile",
    "bottleneck_of",
    "bounds_of",
    "chrome_trace",
    "make_profile",
    "measure_speed",
    "operands_of",
    "profile",
    "profile_values",
]
