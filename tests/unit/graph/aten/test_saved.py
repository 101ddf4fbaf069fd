"""Files that several versions of PyTorch wrote (`save_programs.py`), read without PyTorch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import tensorwright
from tensorwright.base import UnsupportedError, override
from tensorwright.graph import interpret
from tensorwright.graph.model_import import load_model

SAVED = Path(__file__).parent / "saved"
FILES = sorted(SAVED.glob("*/*.pt2"))
OLD = {
    "torch-2.5.1": "PyTorch 2.5.1 (schema 7.3)",
    "torch-2.7.1": "PyTorch 2.7.1+cpu (schema 8.7)",
}
READ = [path for path in FILES if path.parent.name not in OLD and path.stem != "counter"]


def kept(path: Path, letter: str) -> list[NDArray[np.generic]]:
    """The inputs (x) or the results (y) of a module."""
    with np.load(path.with_suffix(".npz")) as arrays:
        return [arrays[name] for name in sorted(arrays) if name.startswith(letter)]


def named(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


def test_there_are_files_of_several_versions() -> None:
    versions = {path.parent.name for path in READ}
    assert len(versions) >= 4
    assert len(READ) == 3 * len(versions)
    assert sum(path.stat().st_size for path in FILES) < 1 << 20


@pytest.mark.parametrize("path", READ, ids=named)
def test_what_a_version_wrote_computes_what_it_computed(path: Path) -> None:
    graph = load_model(path)
    results = interpret(graph, dict(zip(graph.inputs, kept(path, "x"), strict=True)))
    for name, expected in zip(graph.outputs, kept(path, "y"), strict=True):
        assert results[name].dtype == expected.dtype
        np.testing.assert_allclose(results[name], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("path", [p for p in READ if p.stem == "encoder"], ids=named)
def test_an_open_batch_is_compiled(path: Path) -> None:
    with override(default_schedule="rule"):
        executable = tensorwright.compile(path)
    assert [str(size) for size in executable.sizes] == ["x_0 in 1..8"]
    (x,), (expected,) = kept(path, "x"), kept(path, "y")
    for batch in (1, 3):
        found = executable(x[:batch])
        np.testing.assert_allclose(found, expected[:batch], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("path", [p for p in FILES if p.stem == "counter"], ids=named)
def test_what_is_not_read_is_refused_by_name(path: Path) -> None:
    writer = OLD.get(path.parent.name)
    reason = (
        "it writes into calls" if writer is None else f"{writer} wrote it, with pickled weights"
    )
    with pytest.raises(UnsupportedError) as raised:
        load_model(path)
    assert reason in str(raised.value)
