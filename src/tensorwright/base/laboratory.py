"""What a second package adds, `tensorwright-lab`: networks, competitors, other ways to search.

The compiler does not import it. It loads the package's modules by name where it is installed.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from typing import Any

from tensorwright.base.errors import MachineError

LABORATORY = "tensorwright_lab"
SUITE_LOADERS = {"light": "load_light", "zoo": "build", "wild": "load_wild"}
"""The kinds of networks that commands call KIND:NAME, with their functions in `zoo`."""


def has_laboratory() -> bool:
    """Whether the package is installed."""
    return importlib.util.find_spec(LABORATORY) is not None


def require_laboratory(where: str) -> None:
    """Refuse a part of the package, named by `where`, if the package is not installed.

    Raises:  MachineError.
    """
    if not has_laboratory():
        raise MachineError(
            stage="laboratory",
            where=where,
            reason="it is part of the package tensorwright-lab, which is not installed",
            remedy="pip install ./lab, in the folder of tensorwright's sources",
        )


@dataclass(frozen=True, slots=True)
class LaboratoryPart:
    """Something of the package that a user asks for by name, imported when it is asked for.

    where       what the user asks for: "strategy grid"
    module      of the package              attribute   what it is in that module
    """

    where: str
    module: str
    attribute: str

    def load(self) -> Any:
        """Import it.

        Raises:  MachineError where the package is not installed.
        """
        require_laboratory(self.where)
        return getattr(importlib.import_module(f"{LABORATORY}.{self.module}"), self.attribute)
