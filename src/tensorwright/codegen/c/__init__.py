"""C back end: loop programs to C source with vector extensions, built by the system's compiler.

From loop program to text: kernel.py, then statements.py, values.py, operations.py and indices.py;
what functions C lacks are in helpers.py. From text to a shared object: compiler.py.
"""

from tensorwright.codegen.c.compiler import (
    FLAGS,
    compile_source,
    compiler_key,
    machine_flags,
    refusal,
)
from tensorwright.codegen.c.kernel import emit
from tensorwright.codegen.c.text import c_name

__all__ = [
    "FLAGS",
    "c_name",
    "compile_source",
    "compiler_key",
    "emit",
    "machine_flags",
    "refusal",
]
