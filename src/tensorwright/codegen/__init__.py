"""Code generators: loop programs in, code out.

`backend.py` says what a back end is and what it writes, `analysis/` has the facts about loop
programs by which all of them decide; `llvm/` writes LLVM IR and compiles it, `c/` writes C.
"""

from tensorwright.codegen.backend import Backend, Signature, Source
