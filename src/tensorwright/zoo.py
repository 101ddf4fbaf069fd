"""The networks by name, where the package tensorwright-lab is installed: its `zoo`.

from tensorwright.zoo import build
model = build("squeezenet")
"""

from __future__ import annotations

from typing import Any

from tensorwright.base import LaboratoryPart


def __getattr__(name: str) -> Any:
    """A name of the laboratory's `zoo` (PEP 562).

    Raises:  MachineError where the laboratory is not installed; AttributeError for another name.
    """
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return LaboratoryPart(f"module {__name__}", "zoo", name).load()
