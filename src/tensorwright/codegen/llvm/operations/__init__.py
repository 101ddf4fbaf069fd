"""What the functions of the value language are in LLVM."""
