"""C back end: loop programs to C source with vector extensions, built by the system's compiler.

From loop program to text: kernel.py, on the walker of `c_family`, whose words
kernel.py has. From text to a shared object: backend.py.
"""

from tensorwright.codegen.c.backend import BACKEND, FLAGS, machine_flags, refusal
from tensorwright.codegen.c.kernel import FLOAT_STATE, C, emit

c_name = C.identifier
"""A C identifier near a name."""
