"""Curves as PNG files: matplotlib, where it is installed."""

from __future__ import annotations

import importlib
from typing import Any

from tensorwright.base import UsageError


def pyplot() -> Any:
    """matplotlib's pyplot, which draws into files, without a display.

    Ask before a long run: it would be lost at its end.
    Raises:  UsageError where matplotlib is missing.
    """
    try:
        importlib.import_module("matplotlib").use("Agg")
    except ModuleNotFoundError:
        raise UsageError(
            stage="benchmark",
            where="matplotlib",
            reason="it is not installed, and the curves need it",
            remedy="pip install 'tensorwright[bench]'",
        ) from None
    return importlib.import_module("matplotlib.pyplot")
