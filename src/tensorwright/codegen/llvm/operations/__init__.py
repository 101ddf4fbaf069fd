"""The functions of the value language in LLVM."""
