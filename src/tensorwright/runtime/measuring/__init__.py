"""Measure the rates of this machine and the costs of calls, by code compiled for the target.

Read `local_machine.py` first.
"""

from tensorwright.runtime.measuring.call_costs import CallCosts, measure_call_costs
from tensorwright.runtime.measuring.devices import DeviceRates, measure_rates
from tensorwright.runtime.measuring.local_machine import (
    measure_ceilings,
    measure_peak_alone,
    this_machine,
)
from tensorwright.runtime.measuring.peak import measure_bandwidth, measure_peak
from tensorwright.runtime.measuring.turns import (
    faster_half,
    samples_in_turns,
    seconds_in_turns,
    typical_seconds,
)

__all__ = [
    "CallCosts",
    "DeviceRates",
    "faster_half",
    "measure_bandwidth",
    "measure_call_costs",
    "measure_ceilings",
    "measure_peak",
    "measure_peak_alone",
    "measure_rates",
    "samples_in_turns",
    "seconds_in_turns",
    "this_machine",
    "typical_seconds",
]
