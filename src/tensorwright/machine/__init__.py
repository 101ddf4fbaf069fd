"""Facts about machines: their rates, and the current state of this one.

Read `machine.py` first: the record that estimates and prices use, with the assumed numbers of every
processor. `ceilings.py` has the highest rates of this machine, `kept.py` the file of these and of
its rates, `hardware.py` its fingerprint, `load.py` and `state.py` the load of other processes.
`runtime/measuring/` measures.
"""

from tensorwright.machine.card import Card, Unit, card_of
from tensorwright.machine.ceilings import MEMORY, Ceilings, Level, assumed_ceilings, better_of
from tensorwright.machine.hardware import detect_hardware
from tensorwright.machine.kept import (
    MOST_STEPS,
    Steps,
    keep_ceilings,
    keep_steps,
    kept_ceilings,
    kept_steps,
    refine_ceilings,
    steps_from,
)
from tensorwright.machine.load import Load, LoadWatch
from tensorwright.machine.machine import NOMINAL, Machine, Rates, machine_of, nominal_rates
from tensorwright.machine.state import MachineState

__all__ = [
    "MEMORY",
    "MOST_STEPS",
    "NOMINAL",
    "Card",
    "Ceilings",
    "Level",
    "Load",
    "LoadWatch",
    "Machine",
    "MachineState",
    "Rates",
    "Steps",
    "Unit",
    "assumed_ceilings",
    "better_of",
    "card_of",
    "detect_hardware",
    "keep_ceilings",
    "keep_steps",
    "kept_ceilings",
    "kept_steps",
    "machine_of",
    "nominal_rates",
    "refine_ceilings",
    "steps_from",
]
