"""The interpreter of loop nests, by which passes, primitives and code generators are judged.

interpreter.py  runs a loop nest by the meaning of the IR, with every check
closures.py     index expressions and conditions as Python functions; decisions as numbers
memory.py       buffers that know which iteration stored what, and which copies are in flight
groups.py       the threads of a group, from barrier to barrier
"""

from tensorwright_lab.loop_interpreter.closures import bind_decisions
from tensorwright_lab.loop_interpreter.interpreter import interpret
