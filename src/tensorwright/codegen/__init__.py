"""Code generators: loop programs in, code out. Read llvm/ first."""

__all__: list[str] = []
