"""C back end: loop programs to C source with vector extensions, built by the system's compiler.

From loop program to text: kernel.py and statements.py, on the walker of `c_family`, whose words
dialect.py has. From text to a shared object: compiler.py.
"""

from tensorwright.codegen.c.compiler import FLAGS, machine_flags, refusal
from tensorwright.codegen.c.dialect import FLOAT_STATE, C
from tensorwright.codegen.c.kernel import emit

c_name = C.identifier
"""A C identifier near a name."""

__all__ = ["FLAGS", "FLOAT_STATE", "c_name", "emit", "machine_flags", "refusal"]
