"""Facts about machines: their rates, and the current state of this one.

Read `machine.py` first: the record that estimates and prices ask, with what is assumed of every
processor. `ceilings.py` is what this machine reaches at most, `kept.py` where that and its rates
are kept, `hardware.py` its fingerprint, `load.py` and `state.py` what others use of it. `runtime/`
measures.
"""

from tensorwright.machine.card import Card, Unit, card_of
from tensorwright.machine.ceilings import MEMORY, Ceilings, Level, better_of
from tensorwright.machine.hardware import detect_hardware
from tensorwright.machine.kept import (
    MOST_STEPS,
    Steps,
    keep_ceilings,
    keep_steps,
    kept_ceilings,
    kept_steps,
    refine_ceilings,
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
]
