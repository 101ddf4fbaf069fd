"""No module of graph/ lists operators by name: what it needs to know is in their records."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tensorwright.ops import OPERATORS, Fold, Pattern

SOURCE = Path(__file__).parents[4] / "src" / "tensorwright" / "graph"
NAMES = {each.name for each in OPERATORS}
TRANSLATIONS = ("imports", "onnx_export")  # of names of others and ours
ALLOWED = {
    "passes/quantized.py": {("conv_integer", "matmul_integer")},  # which of floats they become
    # products that need no order of the second matrix; what makes wide numbers of constants
    "joined_products.py": {("matmul", "matmul_integer"), ("cast", "dequantize_blocks")},
    # it merges the first two; filters pass the others
    "passes/affine.py": {("add", "mul"), ("conv", "conv_transpose"), ("div", "mul")},
    "passes/composites.py": {("div", "mul")},  # multiples of a tensor
    # rows instead of the first two; windows that may pad by themselves
    "passes/movement.py": {("gather_elements", "scatter_elements"), ("average_pool", "conv")},
}
MODULES = sorted(
    path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] not in TRANSLATIONS
)


def lists_of_names(source: str) -> Iterator[tuple[str, ...]]:
    """Collections, and cases of a match, that hold two names of operators or more."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Set(elts=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts):
                values = parts
            case ast.Dict(keys=keys):
                values = [key for key in keys if key is not None]
            case ast.MatchOr(patterns=patterns):
                values = [each.value for each in patterns if isinstance(each, ast.MatchValue)]
            case _:
                continue
        strings = {each.value for each in values if isinstance(each, ast.Constant)}
        names = sorted(each for each in strings if isinstance(each, str) and each in NAMES)
        if len(names) > 1:
            yield tuple(names)


@pytest.mark.parametrize("path", MODULES, ids=[str(p.relative_to(SOURCE)) for p in MODULES])
def test_a_module_asks_the_record(path: Path) -> None:
    allowed = ALLOWED.get(str(path.relative_to(SOURCE)), set())
    assert set(lists_of_names(path.read_text())) <= allowed


def test_what_the_scan_sees() -> None:
    source = 'a = {"conv", "gemm"}\nb = ["add"]\nmatch x:\n  case "slice" | "split":\n    pass\n'
    assert set(lists_of_names(source)) == {("conv", "gemm"), ("slice", "split")}


@pytest.mark.parametrize("each", OPERATORS, ids=lambda each: each.name)
def test_who_folds_says_what(each: object) -> None:
    assert isinstance(each, type(OPERATORS[0]))
    computes_alone = each.pattern in (Pattern.ELEMENTWISE, Pattern.INJECTIVE, Pattern.OPAQUE)
    assert computes_alone == (each.fold is Fold.NONE)
