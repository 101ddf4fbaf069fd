"""Code generators.

`analysis/` says what each of them needs to know about a loop program; `llvm/` writes LLVM IR and
compiles it.
"""

__all__: list[str] = []
