"""What a second package adds, `tensorwright-lab`: networks of suites, competitors and benchmarks.

Nothing of the compiler imports it. Commands ask for its modules by name, where it is installed.
"""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from tensorwright.base import MachineError

PACKAGE = "tensorwright_lab"


def has_laboratory() -> bool:
    """Whether the package is installed."""
    return importlib.util.find_spec(PACKAGE) is not None


def laboratory(module: str, where: str) -> ModuleType:
    """One of its modules; `where` says what needs it.

    Raises:  MachineError where the package is not installed.
    """
    if not has_laboratory():
        raise MachineError(
            stage="cli",
            where=where,
            reason="it is part of the package tensorwright-lab, which is not installed",
            remedy="pip install tensorwright-lab",
        )
    return importlib.import_module(f"{PACKAGE}.{module}")
