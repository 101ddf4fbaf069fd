"""Checks of code for graphics processors without a card.

kernels.py   six kernels with schedules by hand
faults.py    programs with a fault put in, for those who must find it
running.py   a program on the device of its target, and on a simulator that finds races and accesses
             outside of memory
sass.py      machine code of NVIDIA's cards: loops, local memory, shares of multiply-adds
"""

from tensorwright_lab.cards.faults import (
    FAULTS, Fault, changed, with_late_copies, with_own_memory, without_barrier,
)
from tensorwright_lab.cards.kernels import (
    LARGE, SMALL, SMALL_TILES, CardKernel, kernels, product, product_tiles, shared_tiles, winograd,
)
from tensorwright_lab.cards.running import (
    Arrays, empty_results, given_array, missing_oclgrind, run_by_oclgrind, run_on,
)
from tensorwright_lab.cards.sass import Function, disassemble, find_disassembler, functions_of
