"""Facts about machines: their rates, and the current state of this one.

Read `machine.py` first: the record that estimates and prices use, with the assumed numbers of every
processor, the highest rates of this machine and its fingerprint. `kept.py` has the file of what was
measured, and the load of other processes.
`runtime/measuring/` measures.
"""

from tensorwright.machine.kept import (
    MOST_STEPS, Load, LoadWatch, MachineState, Steps, keep_ceilings, keep_product_steps, keep_steps,
    kept_ceilings, kept_product_steps, kept_steps, product_steps_from, refine_ceilings, steps_from,
)
from tensorwright.machine.machine import (
    MEMORY, NOMINAL, Card, Ceilings, Level, Machine, Rates, Unit, assumed_ceilings, better_of,
    card_of, detect_hardware, machine_of, nominal_rates,
)
