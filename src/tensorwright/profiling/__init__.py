"""Where the time of a network goes. Read `report.py` first, then `measure.py` and `roofline.py`."""

from tensorwright.profiling.devices import DeviceSpeed, measure_speed
from tensorwright.profiling.measure import Samples, make_profile, profile
from tensorwright.profiling.report import (
    FEWER, Profile, StepKind, StepProfile, chrome_trace, profile_values,
)
from tensorwright.profiling.roofline import (
    Bottleneck, Bounds, Operand, bottleneck_of, bounds_of, operands_of,
)
