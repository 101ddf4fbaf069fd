"""The order of the folders: a folder of src/tensorwright imports only folders above it.

Other folders, and folders in them, are imported through their `__init__`, never file by file, and
no function imports anything: the imports of a file are its first lines. Registries load modules by
name, through importlib. The pipeline (pipeline.py) stands above the folders; only those that people
and other programs call from outside may use it, as `from tensorwright import pipeline` or through
the public names of the package. What is in a folder has an order, too (`ROOMS`), and nowhere do
modules import each other in a circle.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = "tensorwright"
SOURCE = Path(__file__).parents[2] / "src" / PACKAGE
ORDER = (
    "base machine machine_code processes farm expr ops graph rewriting schedule loop codegen "
    "runtime build records tuning peers integrations onnxruntime_compat profiling drivers report "
    "cli"
).split()
SURFACES = (
    *("peers", "integrations", "onnxruntime_compat"),
    *("profiling", "drivers", "report", "cli"),
)
BY_FILE = ("drivers",)
"""Folders whose files are imported one by one: nobody needs all of them."""
ROOMS = {
    # A line for each folder that has folders in it: they, and modules where they matter, import
    # only what stands before them. All folders are named, modules need not be.
    "base": "errors dtypes cores machines knobs files linux targets",
    "build": "backend kernel opaque_kernels assemble c_library",
    "cli": "printing arguments reporting doctor explain farm operators rules",
    "codegen": "analysis source backend llvm c_family c opencl cuda",
    "codegen.llvm": "math text intrinsics memory operations",
    "expr": "interned symbolic index value tensor evaluation building",
    "expr.index": "nodes arithmetic condition traversal sizes ranges counterexample bounds "
    "simplify",
    "expr.building": "arguments inside compute intrinsics",
    "farm": "unit functions messages farm device_state serving security keys stdio dask connecting "
    "local",
    "graph": "printing graph nested infer sizes workload partition layout onnx_import aten_import "
    "model_import onnx_export passes drawing",
    "graph.aten_import": "record call promotion counterparts converters in_place schema archive "
    "importer",
    "graph.onnx_import": "reading call tensors converters com_microsoft ai_onnx_ml "
    "control_flow importer",
    "machine": "machine hardware ceilings kept load state",
    "integrations": "pytorch",
    "onnxruntime_compat": "errors options values binding session capi",
    "loop": "ir traversal addresses launches passes lowering algorithms",
    "loop.passes": "barriers",
    "machine_code": "libm text numbers native_function compilation",
    "ops": "operator named_sizes attributes shapes access pointwise folding contraction windows "
    "moving host positions registry",
    "peers": "process competitors prices",
    "records": "record store logs networks",
    "rewriting": "traversal dims terms assumptions shapes operators text naming egraph "
    "extraction axioms meaning prove derivation library networks backtracking candidates",
    "rewriting.backtracking": "draft_graph moves search network_search",
    "rewriting.candidates": "kinds coverage search",
    "rewriting.extraction": "problem cheapest_trees contraction draft local_search",
    "rewriting.networks": "opaque network_analysis term_builder counterparts read "
    "forms write operator_costs program_prices extract rules saturate steps certificates",
    "rewriting.networks.certificates": "certificate certificate_file certificate_text",
    "rewriting.prove": "problem sampling refute outcome instances saturate explain ranks prover "
    "conditions validation",
    "runtime": "buffers plan container caches native device cards host executable measuring",
    "runtime.native": "pool",
    "schedule": "algorithms execution memory_layout state sharing pipelining analysis primitive "
    "primitives trace open_sizes workload",
    "schedule.primitives": "split fuse reorder marks rfactor groups",
    "tuning": "space features measuring models time_model population selection task strategies "
    "logs datasets on_farm learning task_scheduling session",
    "tuning.features": "columns formulas grid groups featurizer feature_set",
    "tuning.models": "protocol training settings losses trees session_model",
    "tuning.space": "tile_limits knobs sketch axes register_tile steps defaults derived templates "
    "space",
    "tuning.space.defaults": "tile_sizes tiling byte_products winograd",
    "tuning.space.templates": "values applied configuration template product gpu space",
    "tuning.space.derived": "predicates derivation rule rules engine",
    "tuning.population": "candidate population picking variation",
    "tuning.strategies": "strategy evolution annealing named",
}
MOST_MODULES = 15
LABORATORY = "tensorwright_lab"
LABORATORY_SOURCE = Path(__file__).parents[2] / "lab" / "src" / LABORATORY
LABORATORY_ORDER = (
    "graph_text loop_interpreter cards rule_generation zoo suites judging feature_sets cost_models "
    "strategies proposing pretraining competitors comparison exact_extraction bench pretrain demo"
).split()
"""The folders and modules of the second package, which imports the first one as it likes."""


def module_of(path: Path) -> tuple[str, ...]:
    """The module's name below the package: src/tensorwright/expr/value.py -> (expr, value)."""
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
        for name in (*imported(node), *filter(_is_module, _members(node))):
            texts = (*_folder_faults(own, name), *_room_faults(module, name))
            yield from (f"line {node.lineno}: {text}" for text in texts)


def _room_faults(module: tuple[str, ...], name: tuple[str, ...]) -> Iterator[str]:
    """What is wrong with an import inside one top folder, by the order of its rooms."""
    pairs = list(zip(module, name, strict=False))
    depth = next((n for n, (own, other) in enumerate(pairs) if own != other), 0)
    if not depth:
        return
    folder = ".".join(module[:depth])
    order = ROOMS.get(folder, "").split()
    own, other = pairs[depth]
    if own in order and other in order and order.index(own) < order.index(other):
        yield f"in {folder}, {own} imports {other}, which comes after it"


def _folder_faults(own: str | None, name: tuple[str, ...]) -> Iterator[str]:
    """What is wrong with an import of `name` in a file of the folder `own` (None: the top)."""
    if own is None and len(name) < 2:
        return
    if name in (("version",), (own,)) or name[:1] == (own,):
        return
    if not name or name[0] not in ORDER:
        if own is not None and own not in SURFACES:
            yield f"{own} imports {'.'.join(name) or PACKAGE}, which stands above all folders"
        return
    is_by_file = name[0] in BY_FILE
    if len(name) > 1 and not is_by_file and not (SOURCE.joinpath(*name) / "__init__.py").exists():
        yield f"import {PACKAGE}.{name[0]}, not its file {'.'.join(name)}"
    if own is not None and ORDER.index(name[0]) > ORDER.index(own):
        yield f"{own} imports {name[0]}, which comes after it"


def _is_module(name: tuple[str, ...]) -> bool:
    """Whether a name in a folder is a module or folder in it, and nothing that the folder gives."""
    *folder, last = name
    opening = SOURCE.joinpath(*folder, "__init__.py")
    return (
        opening.exists()
        and _exists(".".join(folder), last)
        and last not in (_public_names(ast.parse(opening.read_text())) or ())
    )


def _public_names(tree: ast.Module) -> list[str] | None:
    """What `__all__` lists; None where there is no such list."""
    lists = [
        node.value.elts
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and target.id == "__all__"
        if isinstance(node.value, ast.List | ast.Tuple)
    ]
    if not lists:
        return None
    return [each.value for names in lists for each in names if isinstance(each, ast.Constant)]


FILES = sorted(SOURCE.rglob("*.py"))
LABORATORY_FILES = sorted(LABORATORY_SOURCE.rglob("*.py"))


def test_imports_keep_the_order() -> None:
    told = [
        f"{path}: {text}" for path in FILES for text in faults(path.read_text(), module_of(path))
    ]
    assert told == []


def test_nothing_of_the_compiler_imports_the_laboratory() -> None:
    told = [path for path in FILES if LABORATORY in _imported_packages(path.read_text())]
    assert told == []


def test_the_laboratory_keeps_an_order() -> None:
    """Its folders import only folders before them; none imports in a function."""
    for path in LABORATORY_FILES:
        own = path.relative_to(LABORATORY_SOURCE).with_suffix("").parts[0]
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                imports = [n for n in ast.walk(node) if isinstance(n, ast.Import | ast.ImportFrom)]
                assert not imports, f"{path}: an import inside a function"
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(LABORATORY):
                other = (node.module or "").split(".")[1:2]
                before = LABORATORY_ORDER[: LABORATORY_ORDER.index(own) + 1]
                assert own == "__init__" or set(other) <= set(before), f"{path} imports {other}"


def _imported_packages(source: str) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    return names


def test_every_folder_has_its_place() -> None:
    folders = {path.parent.name for path in SOURCE.glob("*/*.py")}
    assert folders == set(ORDER), "a folder without a place, or a place without a folder"
    assert len(set(ORDER)) == len(ORDER)
    assert set(SURFACES) < folders


def test_every_folder_of_modules_is_a_package() -> None:
    """One without an `__init__` would be in none of the orders."""
    folders = {path.parent for path in FILES}
    assert not [folder for folder in folders if not (folder / "__init__.py").exists()]


def test_every_room_has_its_place() -> None:
    rooms: dict[str, set[str]] = {}
    for path in SOURCE.glob("*/*/**/__init__.py"):
        *folder, room = module_of(path)
        rooms.setdefault(".".join(folder), set()).add(room)
    for folder, names in rooms.items():
        assert names <= set(ROOMS.get(folder, "").split()), f"give {folder} a line in ROOMS"
    for folder, line in ROOMS.items():
        assert len(set(line.split())) == len(line.split()), f"the line of {folder} repeats a name"
        missing = [name for name in line.split() if not _exists(folder, name)]
        assert not missing, f"the line of {folder} names what is not there"


def _exists(folder: str, name: str) -> bool:
    path = SOURCE.joinpath(*folder.split("."), name)
    return path.is_dir() or path.with_suffix(".py").exists()


def test_no_folder_has_too_many_modules() -> None:
    counts = Counter(".".join(module_of(path)[:-1]) for path in FILES if path.stem != "__init__")
    crowded = {folder: n for folder, n in counts.items() if n > MOST_MODULES}
    assert not crowded


def test_no_modules_import_each_other_in_a_circle() -> None:
    modules = {module_of(path): path for path in FILES}
    circle = circle_of({name: path.read_text() for name, path in modules.items()})
    assert not circle, " <- ".join(".".join(name) for name in circle)


def circle_of(sources: Mapping[tuple[str, ...], str]) -> list[tuple[str, ...]]:
    """Modules of which each imports the one before it, also for type checkers only."""
    graph: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for module, source in sources.items():
        nodes = [
            n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Import | ast.ImportFrom)
        ]
        names = {name for node in nodes for name in (*imported(node), *_members(node))}
        graph[module] = {name for name in names if name in sources and name} - {module}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[tuple[str, ...]] = error.args[1]
        return circle
    return []


def _members(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, ...]]:
    """What `from folder import name` names if it is a module."""
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{PACKAGE}."):
        folder = (node.module or "").split(".")[1:]
        yield from ((*folder, alias.name) for alias in node.names)


def test_a_circle_is_seen() -> None:
    up, down = "from tensorwright.a import x", "from tensorwright import b"
    only_types = "if TYPE_CHECKING:\n    from tensorwright.b.c import y"
    assert circle_of({("a",): "", ("b",): up, ("b", "c"): down}) == []
    assert sorted(set(circle_of({("a",): down, ("b",): up}))) == [("a",), ("b",)]
    assert circle_of({("a",): only_types, ("b", "c"): "from tensorwright import a"})


@pytest.mark.parametrize("folder", ORDER)
def test_a_folder_lists_its_public_names(folder: str) -> None:
    tree = ast.parse((SOURCE / folder / "__init__.py").read_text())
    assert _public_names(tree) is not None
    assert ast.get_docstring(tree), "say what to read first"


@pytest.mark.parametrize(
    ("module", "source", "expected"),
    [
        (("expr", "index"), "from tensorwright.base import DType", []),
        (("expr", "tensor"), "from tensorwright.expr.value import Value", []),
        (("expr", "index"), "import numpy", []),
        (("cli", "main"), "from tensorwright import pipeline", []),
        (("cli", "main"), "import tensorwright", []),
        (("tuning",), "from tensorwright import pipeline", ["line 1: tuning imports pipeline"]),
        (("tuning",), "import tensorwright", ["line 1: tuning imports tensorwright"]),
        (("records",), "from tensorwright.version import __version__", []),
        (("records",), "from tensorwright import cli", ["line 1: records imports cli"]),
        (("pipeline",), "from tensorwright.graph import Graph", []),
        (("pipeline",), "from tensorwright.graph.node import Node", ["line 1: import"]),
        (("base", "knobs"), "from tensorwright.expr import Axis", ["line 1: base imports expr"]),
        (("base", "knobs"), "import tensorwright.loop", ["line 1: base imports loop"]),
        (
            ("loop", "ir"),
            "from tensorwright.loop.lowering import x",
            ["line 1: in loop, ir imports"],
        ),
        (("loop", "lowering"), "from tensorwright.loop.ir import x", []),
        (
            ("peers", "process", "x"),
            "import tensorwright.peers.prices",
            ["line 1: in peers, pro"],
        ),
        (("graph",), "from tensorwright.ops.conv import C", ["line 1: import tensorwright.ops"]),
        (("graph",), "from tensorwright.ops import broadcast_shapes", []),
        (("graph",), "from tensorwright.base import sources", ["line 1: import tensorwright.base"]),
        (("pipeline",), "from tensorwright.base import sources", ["line 1: import tensorwright.b"]),
        (
            ("peers", "process", "x"),
            "from tensorwright.peers import prices",
            ["line 1: in peers, process imports prices"],
        ),
        (("graph",), "def f():\n    import numpy", ["line 2: an import inside a function"]),
        (("graph",), "from . import node", ["line 1: a relative import"]),
        (("graph",), "def f():\n    return importlib.import_module('z3')", []),
    ],
)
def test_the_rules_themselves(module: tuple[str, ...], source: str, expected: list[str]) -> None:
    found = list(faults(source, module))
    assert len(found) == len(expected)
    assert all(text.startswith(start) for text, start in zip(found, expected, strict=True))
