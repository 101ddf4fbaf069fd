"""What this machine reaches, and how it is just now: asked by whoever measures or compares.

Read `ceilings.py` first, then `kept.py`, where they are kept, `load.py` and `state.py`.
"""

from tensorwright.machine.ceilings import MEMORY, Ceilings, Level, better_of, measure_ceilings
from tensorwright.machine.kept import keep_ceilings, kept_ceilings, refine_ceilings
from tensorwright.machine.load import Load, LoadWatch
from tensorwright.machine.state import MachineState, check_machine

__all__ = [
    "MEMORY",
    "Ceilings",
    "Level",
    "Load",
    "LoadWatch",
    "MachineState",
    "better_of",
    "check_machine",
    "keep_ceilings",
    "kept_ceilings",
    "measure_ceilings",
    "refine_ceilings",
]
