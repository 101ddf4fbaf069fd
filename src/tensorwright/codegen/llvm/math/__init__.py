"""Mathematical functions as LLVM IR text, on vectors of any number of lanes."""
