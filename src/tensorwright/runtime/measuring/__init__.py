"""Measure the rates of this machine and the costs of calls, by code compiled for the target.

Read `peak.py` first.
"""

from tensorwright.runtime.measuring.call_costs import (
    CallCosts, DeviceRates, faster_half, measure_call_costs, measure_rates, samples_in_turns,
    seconds_in_turns, typical_seconds,
)
from tensorwright.runtime.measuring.peak import (
    measure_bandwidth, measure_ceilings, measure_peak, measure_peak_alone, measure_speed,
    this_machine,
)
