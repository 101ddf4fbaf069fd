"""MODULE:NAME on the command line: an object of the user's own Python."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from tensorwright.base import TensorwrightError, UsageError, did_you_mean
from tensorwright.expr import Compute
from tensorwright.graph import Workload, program


def read_program(reference: str) -> Workload:
    """The tensor expression that MODULE:EXPR names.

    EXPR is a tensor, a tuple of tensors, the result of `tensorwright.program`, or a function
    without arguments that returns one of these.
    Raises:  UsageError if there is none.
    """
    value = read_object(reference)
    if callable(value) and not isinstance(value, Compute | Workload):
        value = _call(reference, value)
    if isinstance(value, Workload):
        return value
    tensors = value if isinstance(value, tuple | list) else (value,)
    if not tensors or not all(isinstance(each, Compute) for each in tensors):
        raise _error(
            reason=f"it is of type {type(value).__name__}, not a tensor expression",
            where=reference,
            remedy="name a tensor, a tuple of tensors, or a function that returns one of these",
        )
    return program(tuple(tensors), name=reference.rpartition(":")[2])


def read_function(reference: str) -> Callable[..., Any]:
    """The function that MODULE:NAME names.

    Raises:  UsageError if there is none.
    """
    value = read_object(reference)
    if not callable(value):
        reason = f"it is of type {type(value).__name__}, not a function"
        raise _error(reference, reason, "name a function")
    function: Callable[..., Any] = value
    return function


def read_object(reference: str) -> object:
    """The object that MODULE:NAME names.

    MODULE is a Python file or a dotted name. Python also looks for a dotted name in the current
    folder. NAME may be dotted.
    Raises:  UsageError if the module cannot be imported or has no such name.
    """
    module_name, _, attribute = reference.rpartition(":")
    if not module_name or not attribute:
        raise _error(reference, "it is not of the form MODULE:NAME", "for example own.py:layer")
    value: object = _import(reference, module_name)
    for part in attribute.split("."):
        if not hasattr(value, part):
            names = [name for name in vars(value) if not name.startswith("_")]
            remedy = did_you_mean(part, names, f"it defines {', '.join(names) or 'nothing'}")
            raise _error(reference, f"{module_name} has no {attribute}", remedy)
        value = getattr(value, part)
    return value


def _import(reference: str, name: str) -> ModuleType:
    try:
        if name.endswith(".py"):
            return _import_file(Path(name))
        here = str(Path.cwd())
        if here not in sys.path:
            sys.path.insert(0, here)
        return importlib.import_module(name)
    except TensorwrightError:
        raise
    except Exception as error:
        reason = f"{name} cannot be imported: {type(error).__name__}: {error}"
        remedy = f"correct {name}: Python stops in it"
        if isinstance(error, FileNotFoundError | ModuleNotFoundError):
            remedy = "give a module that Python finds from this folder, or a file: own.py:NAME"
        raise _error(reference, reason, remedy) from error


def _import_file(path: Path) -> ModuleType:
    name = f"_tensorwright_program_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _call(reference: str, function: Callable[[], object]) -> object:
    try:
        return function()
    except TensorwrightError:
        raise
    except Exception as error:
        reason = f"calling it failed: {type(error).__name__}: {error}"
        needs = isinstance(error, TypeError)
        remedy = "give a function that needs no arguments" if needs else "mend the function"
        raise _error(reference, reason, remedy) from error


def _error(where: str, reason: str, remedy: str) -> UsageError:
    return UsageError(stage="tune", where=where, reason=reason, remedy=remedy)
