"""tensorwright: a learning tensor compiler.

    import tensorwright
    executable = tensorwright.compile("model.onnx")
    results = executable.run({"input": array})

The names below are loaded when first used, so that importing the package stays fast.
"""

import importlib

from tensorwright.version import __version__

# Public name -> the module that defines it, as `__init__.pyi` says. No file of this folder may bear
# one of these names: importing a submodule binds it in the package, where it would hide the public
# name. That is why the whole pipeline on one screen is pipeline.py, and `compile` is a function in
# it.
with open(f"{__file__}i", encoding="utf-8") as _lines:  # noqa: PTH123 - pathlib is slow to import
    _PUBLIC = {words[-1]: words[1] for words in map(str.split, _lines) if words[0] == "from"}

__all__ = [*_PUBLIC]  # noqa: PLE0604 - computed, so that the list of types is the one home


def __getattr__(name: str) -> object:
    """Load a public name from its module and keep it (PEP 562)."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
