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
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tensorwright.base import without_collection

PACKAGE = "tensorwright"
SOURCE = Path(__file__).parents[2] / "src" / PACKAGE
ORDER = (
    "base machine machine_code processes farm expr ops graph rewriting schedule loop codegen "
    "runtime artifacts records tuning peers integrations onnxruntime_compat profiling drivers "
    "report cli"
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
    "base": "errors tensors machines knobs files",
    "artifacts": "kernel cached_build assemble c_library",
    "cli": "printing arguments report doctor farm listings rules",
    "codegen": "analysis backend llvm c_family c opencl cuda",
    "codegen.llvm": "math text parallel operations",
    "expr": "symbolic index value tensor evaluation building",
    "expr.index": "nodes traversal sizes ranges bounds simplify",
    "farm": "farm serving stdio connecting keys dask",
    "graph": "graph nested infer sizes workload partition layout imports "
    "model_import onnx_export passes drawing",
    "graph.imports": "gguf reading call tensors formula converters com_microsoft ai_onnx_ml "
    "control_flow importer aten",
    "graph.imports.aten": "record in_place schema archive importer",
    "machine": "machine kept",
    "integrations": "pytorch",
    "onnxruntime_compat": "options values session capi",
    "loop": "ir traversal launches passes lowering algorithms",
    "machine_code": "text native_function compilation",
    "ops": "named_sizes operator shapes pointwise reduction normalization contraction attention "
    "windows moving host registry",
    "peers": "process competitors prices",
    "records": "record store logs networks",
    "rewriting": "dims terms assumptions operators text meaning egraph extraction axioms prove "
    "library networks backtracking candidates",
    "rewriting.backtracking": "draft_graph moves search",
    "rewriting.networks": "network_analysis counterparts read write extract saturate",
    "rewriting.prove": "problem refute instances saturate ranks prover",
    "runtime": "buffers plan container caches native device cards host executable measuring",
    "runtime.native": "pool",
    "schedule": "algorithms memory_layout state sharing analysis primitive primitives trace "
    "open_sizes",
    "schedule.primitives": "loops marks reductions groups",
    "tuning": "space features measuring models time_model population selection task strategies "
    "logs datasets on_farm learning task_scheduling session",
    "tuning.features": "columns formulas groups featurizer",
    "tuning.models": "protocol losses trees learned",
    "tuning.space": "knobs sketch accesses roles register_tile steps defaults derived templates "
    "space",
    "tuning.space.defaults": "tile_sizes tiling short_products winograd",
    "tuning.space.templates": "configuration template cpu gpu space",
    "tuning.space.derived": "derivation rules engine",
    "tuning.population": "population variation",
    "tuning.strategies": "strategy evolution annealing named",
}
ROOMS_IN_A_FILE = frozenset(
    "graph.model_import graph.drawing machine_code.compilation peers.prices records.logs "
    "rewriting.candidates tuning.datasets tuning.learning tuning.logs "
    "tuning.task_scheduling".split()
)
"""Rooms that are one module each, which others import as they import folders."""
MOST_MODULES = 20
ROOM_SIZES = Path(__file__).parents[1] / "room_sizes.txt"
LEAST_SHARE = 0.93
"""A room of fewer of its lines has shrunk, and its number with it."""
LABORATORY = "tensorwright_lab"
LABORATORY_SOURCE = Path(__file__).parents[2] / "lab" / "src" / LABORATORY
LABORATORY_ORDER = (
    "rows graph_text loop_interpreter cards rule_generation axiom_checks zoo suites judging "
    "feature_sets cost_models strategies proposing pretraining competitors comparison "
    "exact_extraction bench pretrain demo"
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


@cache
def imports_of(source: str) -> list[tuple[ast.Import | ast.ImportFrom, bool]]:
    """The import statements of a module, and whether each is inside a function."""
    found = []
    with without_collection():
        open_: list[tuple[ast.AST, bool]] = [(ast.parse(source), False)]
    while open_:
        node, is_inside = open_.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append((node, is_inside))
        is_inside |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if not isinstance(node, ast.expr):  # which has no statement in it
            open_ += ((each, is_inside) for each in ast.iter_child_nodes(node))
    return sorted(found, key=lambda each: each[0].lineno)


def faults(source: str, module: tuple[str, ...]) -> Iterator[str]:
    """Every breach of the rules in one file."""
    own = module[0] if module and module[0] in ORDER else None
    for node, is_inside in imports_of(source):
        if is_inside:
            yield f"line {node.lineno}: an import inside a function"
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
    is_room = (SOURCE.joinpath(*name) / "__init__.py").exists() or ".".join(name) in ROOMS_IN_A_FILE
    if len(name) > 1 and not is_by_file and not is_room:
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
        and last not in _public_names(opening.read_text())
    )


@cache
def _public_names(source: str) -> set[str]:
    """What a folder imports and defines for others: its `__all__`, if it has one."""
    names: set[str] = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom):
            names |= {each.asname or each.name for each in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and target.id == "__all__":
                    assert isinstance(node.value, ast.List | ast.Tuple)
                    return {ast.literal_eval(each) for each in node.value.elts}
                names.add(ast.unparse(target))
    return names


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
        for node, is_inside in imports_of(path.read_text()):
            assert not is_inside, f"{path}: an import inside a function"
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(LABORATORY):
                other = (node.module or "").split(".")[1:2]
                before = LABORATORY_ORDER[: LABORATORY_ORDER.index(own) + 1]
                assert own == "__init__" or set(other) <= set(before), f"{path} imports {other}"


def _imported_packages(source: str) -> set[str]:
    names: set[str] = set()
    for node, _ in imports_of(source):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        else:
            names.add((node.module or "").partition(".")[0])
    return names


def test_every_folder_has_its_place() -> None:
    folders = {path.parent.name for path in SOURCE.glob("*/*.py")}
    assert folders == set(ORDER), "a folder without a place, or a place without a folder"
    assert len(set(ORDER)) == len(ORDER)
    assert set(SURFACES) < folders


def test_no_room_grows_unseen() -> None:
    """Who needs more lines raises the number, and says in the changelog what they are for."""
    limits = {name: int(most) for name, most in map(str.split, ROOM_SIZES.read_text().splitlines())}
    lines: Counter[str] = Counter()
    for path in FILES:
        lines[module_of(path)[0] if path.parent != SOURCE else "."] += len(
            path.read_text().splitlines()
        )
    assert limits.keys() == lines.keys()
    grown = {name: n for name, n in lines.items() if n > limits[name]}
    assert not grown, f"above the most lines of {ROOM_SIZES.name}"
    shrunk = {name: n for name, n in lines.items() if n < LEAST_SHARE * limits[name]}
    assert not shrunk, f"lower the numbers in {ROOM_SIZES.name} to these"


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
        names = {name for node, _ in imports_of(source) for name in _named(node, sources)}
        graph[module] = {name for name in names if name in sources and name} - {module}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[tuple[str, ...]] = error.args[1]
        return circle
    return []


def _named(
    node: ast.Import | ast.ImportFrom, sources: Mapping[tuple[str, ...], str]
) -> Iterator[tuple[str, ...]]:
    """The modules that an import names; the folder where some name is none of its modules."""
    members = list(_members(node))
    if not members or not all(member in sources for member in members):
        yield from imported(node)
    yield from members


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
def test_a_folder_says_what_is_inside(folder: str) -> None:
    tree = ast.parse((SOURCE / folder / "__init__.py").read_text())
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
