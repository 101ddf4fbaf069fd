"""Inputs that a candidate is tried on, and the answer that it must give.

Both sides make the inputs from a recipe, so that no weights travel; the reference answer, which
NumPy works out once per workload, is passed as files.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tensorwright.base import DType, InternalError
from tensorwright.expr import (
    Array,
    Compute,
    Element,
    FromIndex,
    Index,
    Load,
    Placeholder,
    Select,
    Tensor,
    Value,
    ValueExpr,
    atoms_of,
    children,
    condition_sides,
    evaluate,
    topological_order,
)
from tensorwright.runtime import empty
from tensorwright.schedule import Workload
from tensorwright.tuning.measuring.blas_threads import one_blas_thread

_MOST_UNDEFINED = 0.01  # share of an output that may be NaN before other inputs are tried


@dataclass(frozen=True, slots=True)
class InputSpec:
    """How an input is filled: integers run over 0..high-1 where `high` is given."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    high: int = 0


@dataclass(frozen=True, slots=True)
class Recipe:
    """How all inputs of a workload are filled.

    is_positive: floats in 0.5..1 and not in -1..1, for functions that are undefined below zero.
    """

    inputs: tuple[InputSpec, ...]
    seed: int = 0
    is_positive: bool = False


@dataclass(frozen=True, slots=True)
class Reference:
    """A workload's trial: the recipe, and per output its name, type and file (.npy).

    bf16, which NumPy's files do not know, is kept as f32.
    """

    key: str
    recipe: Recipe
    outputs: tuple[tuple[str, DType, str], ...]
    has_floats: bool


def make_inputs(recipe: Recipe) -> dict[str, Array]:
    """Fill the inputs; equal recipes give equal arrays, on the boundaries that kernels want."""
    arrays: dict[str, Array] = {}
    for place, spec in enumerate(recipe.inputs):
        source = np.random.Generator(np.random.SFC64([recipe.seed, place]))
        array = empty(spec.shape, spec.dtype)
        array[...] = _draw(spec, source, recipe.is_positive)
        arrays[spec.name] = array
    return arrays


def _draw(spec: InputSpec, source: np.random.Generator, is_positive: bool) -> Array:
    if spec.dtype is DType.BOOL:
        return source.integers(0, 2, spec.shape).astype(np.bool_)
    if spec.dtype.is_float:
        wide = DType.F64 if spec.dtype is DType.F64 else DType.F32
        drawn: Any = source.random(spec.shape, np.dtype(wide.numpy))  # type: ignore[arg-type]
        drawn = 0.5 + drawn / 2 if is_positive else drawn * 2 - 1
        return np.asarray(drawn).astype(spec.dtype.numpy)
    if spec.high:
        return source.integers(0, spec.high, spec.shape).astype(spec.dtype.numpy)
    low, high = max(int(spec.dtype.lowest), -100), min(int(spec.dtype.highest), 255)
    return source.integers(low, high, spec.shape, endpoint=True).astype(spec.dtype.numpy)


def make_reference(workload: Workload, folder: Path, seed: int = 0) -> Reference:
    """Choose inputs that the workload is defined for and work out its answer, in NumPy.

    Inputs that serve as indices must stay inside of what they index: if the extents do not say
    how far that is, smaller and smaller ranges are tried.
    Raises:  InternalError where none fits.
    """
    tensors = topological_order(*workload.outputs)
    inputs = tuple(tensor for tensor in tensors if isinstance(tensor, Placeholder))
    reach = index_reach(tensors)
    fallback: tuple[Recipe, tuple[Array, ...]] | None = None
    for most in (1 << 31, 8, 2, 1):
        specs = tuple(_spec(tensor, reach, most) for tensor in inputs)
        for is_positive in (False, True):
            recipe = Recipe(specs, seed, is_positive)
            answer = _try_inputs(workload, inputs, recipe)
            if answer is not None and _is_defined(answer):
                return _save(workload.key, tensors, recipe, workload.outputs, answer, folder)
            if answer is not None and fallback is None:
                fallback = recipe, answer
        if not reach:
            break
    if fallback is None:
        raise InternalError(
            stage="tune",
            where=f"workload {workload.name}",
            reason="no inputs were found for which it reads inside of its tensors only",
        )
    return _save(workload.key, tensors, fallback[0], workload.outputs, fallback[1], folder)


def index_reach(tensors: Sequence[Tensor]) -> dict[str, int]:
    """For each tensor that serves as an index, the smallest extent that it indexes."""
    reach: dict[str, int] = {}
    for tensor in tensors:
        if not isinstance(tensor, Compute):
            continue
        for index, extent in _indices(tensor.body):
            for atom in atoms_of(index):
                if isinstance(atom, Element):
                    name = atom.source.name
                    reach[name] = min(reach.get(name, extent), extent)
    return reach


def _indices(value: Value) -> Iterator[tuple[Index, int]]:
    """Every index expression in a value with the extent that it must stay below."""
    match value:
        case Load(source, indices):
            for index, extent in zip(indices, source.shape, strict=True):
                yield index, _known(extent)
        case FromIndex(index, _):
            yield index, 1 << 31
        case Select(condition, _, _) if not isinstance(condition, bool | ValueExpr):
            for side in condition_sides(condition):
                yield side, 1 << 31
        case _:
            pass
    for child in children(value):
        yield from _indices(child)


def _known(extent: Index) -> int:
    if not isinstance(extent, int):
        raise InternalError(stage="tune", where="workload", reason=f"extent {extent} is open")
    return extent


def _spec(tensor: Placeholder, reach: dict[str, int], most: int) -> InputSpec:
    shape = tuple(_known(extent) for extent in tensor.shape)
    high = max(1, min(reach[tensor.name], most, 1 << 20)) if tensor.name in reach else 0
    if high and tensor.dtype.is_int:
        high = min(high, int(tensor.dtype.highest))
    return InputSpec(tensor.name, shape, tensor.dtype, high)


def _try_inputs(
    workload: Workload, inputs: tuple[Placeholder, ...], recipe: Recipe
) -> tuple[Array, ...] | None:
    arrays = make_inputs(recipe)
    given = {tensor: arrays[tensor.name] for tensor in inputs}
    try:
        with np.errstate(all="ignore"), one_blas_thread():
            return evaluate(workload.outputs, given)
    except IndexError:
        return None


def _is_defined(answer: tuple[Array, ...]) -> bool:
    for array in answer:
        if array.size and array.dtype.kind not in "iub":
            finite = np.isfinite(array.astype(np.float64, copy=False))
            if 1 - np.mean(finite) > _MOST_UNDEFINED:
                return False
    return True


def _save(
    key: str,
    tensors: Sequence[Tensor],
    recipe: Recipe,
    outputs: tuple[Compute, ...],
    answer: tuple[Array, ...],
    folder: Path,
) -> Reference:
    files = []
    kept = Path(tempfile.mkdtemp(prefix="answer-", dir=folder))
    for number, (tensor, array) in enumerate(zip(outputs, answer, strict=True)):
        path = kept / f"{number}.npy"
        stored = array.astype(np.float32) if tensor.dtype is DType.BF16 else array
        np.save(path, stored)
        files.append((tensor.name, tensor.dtype, str(path)))
    has_floats = any(tensor.dtype.is_float for tensor in tensors)
    return Reference(key, recipe, tuple(files), has_floats)
