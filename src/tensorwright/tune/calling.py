"""What makes the package `tensorwright.tune` a function, too: `tensorwright.tune(expression)`.

Importing a subpackage binds it in its package, where it would hide a function of that name; so the
module itself can be called.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any


class CallableModule(ModuleType):
    """A module that stands for a function of the pipeline."""

    def __call__(self, expression: Any, **options: Any) -> Any:
        """Tune a tensor expression and return what computes it: `pipeline.tune_program`."""
        pipeline = importlib.import_module("tensorwright.pipeline")
        return pipeline.tune_program(expression, **options)
