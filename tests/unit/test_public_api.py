"""The names of the package itself: lazy, and not hidden by submodules."""

from __future__ import annotations

import builtins
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from types import UnionType

import pytest

import tensorwright

SOURCE = Path(tensorwright.__file__).parent
LAZY = sorted(set(tensorwright.__all__) - {"__version__"})


def run(code: str) -> str:
    """The output of a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=SOURCE.parent
    )
    return done.stdout.strip()


@pytest.mark.parametrize("name", LAZY)
def test_no_submodule_bears_a_public_name(name: str) -> None:
    """Importing tensorwright.compile as a module would hide tensorwright.compile, the function."""
    assert not (SOURCE / f"{name}.py").exists()
    assert not (SOURCE / name).exists() or name == "tune"


@pytest.mark.parametrize("name", LAZY)
def test_public_names_resolve(name: str) -> None:
    value = getattr(tensorwright, name)
    assert callable(value) or isinstance(value, UnionType)
    assert getattr(tensorwright, name) is value


def described() -> Iterator[tuple[str, Callable[..., object], str]]:
    """Each public function and method, and the text in which its parameters must be named."""
    for name in LAZY:
        value = getattr(tensorwright, name)
        if inspect.isfunction(value):
            yield name, value, inspect.getdoc(value) or ""
        elif inspect.isclass(value) and not issubclass(value, BaseException | Enum):
            yield name, value.__init__, f"{value.__doc__} {value.__init__.__doc__}"
            for inner in vars(value):
                method = getattr(value, inner)
                if not inner.startswith("_") and inspect.isroutine(method):
                    yield f"{name}.{inner}", method, inspect.getdoc(method) or ""


@pytest.mark.parametrize(("name", "function", "text"), list(described()))
def test_help_names_each_parameter(name: str, function: Callable[..., object], text: str) -> None:
    parameters = [each for each in inspect.signature(function).parameters if each != "self"]
    assert [each for each in parameters if not re.search(rf"\b{each}\b", text)] == [], name


def test_a_star_import_gives_the_words_of_expressions() -> None:
    names: dict[str, object] = {}
    exec("from tensorwright.expr import *", names)
    words = {"placeholder", "compute", "reduce_axis", "sum_over", "select", "cast", "exp", "all_of"}
    assert words <= names.keys()
    assert len(names) < 80
    assert not {"Poly", "canonical_text", "evaluate_index", "rebuild"} & names.keys()
    assert not set(dir(builtins)) & (names.keys() - {"__builtins__"})


def test_public_names_are_listed() -> None:
    assert set(tensorwright.__all__) <= set(dir(tensorwright))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'tensorwright' has no attribute 'complie'"):
        _ = tensorwright.complie


def test_the_name_works_whatever_was_imported_before() -> None:
    code = "import tensorwright.pipeline, tensorwright.base; print(callable(tensorwright.compile))"
    assert run(code) == "True"


@pytest.mark.parametrize(
    "first", ["import tensorwright.tuning.session", "from tensorwright import tune", "pass"]
)
def test_tune_is_a_function_whatever_was_imported_before(first: str) -> None:
    code = (
        f"{first}\n"
        "import tensorwright\n"
        "try:\n    tensorwright.tune(3)\n"
        "except tensorwright.TensorwrightError as error:\n    print(error)\n"
    )
    assert run(code) == (
        "argument of type int: it is neither a tensor expression nor a model\n"
        "  try: give tensors, an ONNX file, its bytes or its ModelProto, or a Graph"
    )


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, tensorwright; "
        "print([m for m in ('numpy', 'onnx', 'llvmlite', 'torch', 'z3') if m in sys.modules])"
    )
    assert run(code) == "[]"


def test_compiling_loads_of_the_tuner_what_chooses_schedules() -> None:
    code = (
        "import sys, tensorwright\n"
        "from tensorwright.expr import compute, placeholder\n"
        "from tensorwright.base import DType\n"
        "x = placeholder('x', (64,), DType.F32)\n"
        "tensorwright.compile(compute('y', (64,), lambda i: x[i] + 1.0))\n"
        "rooms = ('session', 'measuring', 'datasets', 'task_scheduling', 'strategies')\n"
        "unwanted = ['tensorwright.processes', 'lightgbm', 'scipy']\n"
        "unwanted += [f'tensorwright.tuning.{room}' for room in rooms]\n"
        "print([m for m in unwanted if m in sys.modules])"
    )
    assert run(code) == "[]"


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text())["project"]
    assert project["version"] == tensorwright.__version__


def test_help_shows_the_options_of_a_search() -> None:
    options = inspect.signature(tensorwright.tune).parameters
    assert options["minutes"].default is None
    assert "farm" not in options
    assert "patience      End after this many rounds" in (inspect.getdoc(tensorwright.tune) or "")
