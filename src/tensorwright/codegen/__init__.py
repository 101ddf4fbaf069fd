"""Code generators: loop programs in, code out.

`source.py` says what a back end writes, `analysis/` what each of them needs to know about a loop
program; `llvm/` writes LLVM IR and compiles it.
"""

from tensorwright.codegen.source import Signature, Source

__all__ = ["Signature", "Source"]
