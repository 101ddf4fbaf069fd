"""The order of the folders: a folder of src/tensorwright imports only folders above it.

Other folders, and folders in them, are imported through their `__init__`, never file by file, and
no function imports anything: the imports of a file are its first lines. Registries load modules by
name, through importlib. The pipeline (pipeline.py) stands above the folders; only those that people
and other programs call from outside may use it, as `from tensorwright import pipeline` or through
the public names of the package.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = "tensorwright"
SOURCE = Path(__file__).parents[2] / "src" / PACKAGE
ORDER = (
    "base processes expr ops graph rewrite schedule loop codegen runtime build records tuning farm "
    "zoo peers integrations report cli"
).split()
SURFACES = ("peers", "integrations", "report", "cli")


def module_of(path: Path) -> tuple[str, ...]:
    """The module's name below the package: src/tensorwright/expr/index.py -> (expr, index)."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, ...]]:
    """What an import statement names, below the package; nothing for other packages.

    `from tensorwright import base` names (base,): the folder, not an attribute.
    """
    if isinstance(node, ast.Import):
        names = [alias.name.split(".") for alias in node.names]
    elif node.module == PACKAGE:
        names = [[PACKAGE, alias.name] for alias in node.names]
    else:
        names = [(node.module or "").split(".")]
    for name in names:
        if name[0] == PACKAGE:
            yield tuple(name[1:])


def faults(source: str, module: tuple[str, ...]) -> Iterator[str]:
    """Every breach of the rules in one file."""
    tree = ast.parse(source)
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for node in ast.walk(function):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    yield f"line {node.lineno}: an import inside a function"
    own = module[0] if module and module[0] in ORDER else None
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        if isinstance(node, ast.ImportFrom) and node.level > 0:
            yield f"line {node.lineno}: a relative import"
            continue
        for name in imported(node):
            yield from (f"line {node.lineno}: {text}" for text in _folder_faults(own, name))


def _folder_faults(own: str | None, name: tuple[str, ...]) -> Iterator[str]:
    """What is wrong with an import of `name` in a file of the folder `own` (None: the top)."""
    if own is None and len(name) < 2:
        return
    if name in (("__version__",), (own,)) or name[:1] == (own,):
        return
    if not name or name[0] not in ORDER:
        if own is not None and own not in SURFACES:
            yield f"{own} imports {'.'.join(name) or PACKAGE}, which stands above all folders"
        return
    if len(name) > 1 and not (SOURCE.joinpath(*name) / "__init__.py").exists():
        yield f"import {PACKAGE}.{name[0]}, not its file {'.'.join(name)}"
    if own is not None and ORDER.index(name[0]) > ORDER.index(own):
        yield f"{own} imports {name[0]}, which comes after it"


FILES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=[".".join(module_of(path)) or "top" for path in FILES])
def test_imports_keep_the_order(path: Path) -> None:
    assert list(faults(path.read_text(), module_of(path))) == []


def test_every_folder_has_its_place() -> None:
    folders = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert folders <= set(ORDER)


@pytest.mark.parametrize("folder", ORDER)
def test_a_folder_lists_its_public_names(folder: str) -> None:
    opening = SOURCE / folder / "__init__.py"
    if not opening.exists():
        pytest.skip(f"{folder} is not written yet")
    tree = ast.parse(opening.read_text())
    targets = [
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    ]
    assert "__all__" in targets
    assert ast.get_docstring(tree), "say what to read first"


@pytest.mark.parametrize(
    ("module", "source", "expected"),
    [
        (("expr", "index"), "from tensorwright.base import DType", []),
        (("expr", "index"), "from tensorwright.expr.value import Value", []),
        (("expr", "index"), "import numpy", []),
        (("cli", "main"), "from tensorwright import pipeline", []),
        (("cli", "main"), "import tensorwright", []),
        (("tuning",), "from tensorwright import pipeline", ["line 1: tuning imports pipeline"]),
        (("tuning",), "import tensorwright", ["line 1: tuning imports tensorwright"]),
        (("records",), "from tensorwright import __version__", []),
        (("records",), "from tensorwright import cli", ["line 1: records imports cli"]),
        (("pipeline",), "from tensorwright.graph import Graph", []),
        (("pipeline",), "from tensorwright.graph.node import Node", ["line 1: import"]),
        (("base", "knobs"), "from tensorwright.expr import Axis", ["line 1: base imports expr"]),
        (("base", "knobs"), "import tensorwright.loop", ["line 1: base imports loop"]),
        (("graph",), "from tensorwright.ops.conv import C", ["line 1: import tensorwright.ops"]),
        (("graph",), "def f():\n    import numpy", ["line 2: an import inside a function"]),
        (("graph",), "from . import node", ["line 1: a relative import"]),
        (("graph",), "def f():\n    return importlib.import_module('z3')", []),
    ],
)
def test_the_rules_themselves(module: tuple[str, ...], source: str, expected: list[str]) -> None:
    found = list(faults(source, module))
    assert len(found) == len(expected)
    assert all(text.startswith(start) for text, start in zip(found, expected, strict=True))
