"""The interpreter of loop nests, by which passes, primitives and code generators are judged.

interpreter.py  runs a loop nest by the meaning of the IR, with every check
closures.py     index expressions and conditions as Python functions
memory.py       buffers that know what was stored, and by which iteration
copies.py       copies that are in flight until a thread waits for them
groups.py       the threads of a group, from barrier to barrier
bind.py         a program with its decisions replaced by numbers
"""

from tensorwright_lab.loop_interpreter.bind import bind_decisions
from tensorwright_lab.loop_interpreter.interpreter import interpret

__all__ = ["bind_decisions", "interpret"]
