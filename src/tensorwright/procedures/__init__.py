"""Operators that no tensor expression says, as loop nests: machine code, without a schedule.

A procedure stores where the data says (scattering) or decides by it what to do (selection), which a
tensor expression cannot. It is written in the IR of loop nests, so that every back end has it, and
the interpreter runs it in tests. `procedure` gives None for what only the host does.
"""

from tensorwright.procedures.registry import procedure

__all__ = ["procedure"]
