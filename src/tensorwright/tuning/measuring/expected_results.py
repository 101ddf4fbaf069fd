"""What a candidate must compute: inputs that it is tried on, the answer, and how far it may be off.

Both sides make the inputs from a recipe, so that no weights travel; the expected answer, which
NumPy works out once per workload, is passed as files.
"""

from __future__ import annotations

import ctypes
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
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
class ExpectedResults:
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


def make_expected_results(workload: Workload, folder: Path, seed: int = 0) -> ExpectedResults:
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
) -> ExpectedResults:
    files = []
    kept = Path(tempfile.mkdtemp(prefix="answer-", dir=folder))
    for number, (tensor, array) in enumerate(zip(outputs, answer, strict=True)):
        path = kept / f"{number}.npy"
        stored = array.astype(np.float32) if tensor.dtype is DType.BF16 else array
        np.save(path, stored)
        files.append((tensor.name, tensor.dtype, str(path)))
    has_floats = any(tensor.dtype.is_float for tensor in tensors)
    return ExpectedResults(key, recipe, tuple(files), has_floats)


_TOLERANCE = {DType.F64: 1e-10, DType.F32: 1e-4, DType.F16: 1e-2, DType.BF16: 4e-2}
_GUARD_BYTES = 4096
_UNWRITTEN = 0xFF  # NaN for floats


class Guarded:
    """An output with zones before and after it that nobody may write."""

    def __init__(self, shape: tuple[int, ...], dtype: DType) -> None:
        size = math.prod(shape) * dtype.size_bytes
        room = -(-size // 64) * 64 + 2 * _GUARD_BYTES
        self._memory = empty((room,), DType.U8)
        self._memory[...] = _UNWRITTEN
        self._end = _GUARD_BYTES + size
        self.array: Array = np.ndarray(shape, dtype.numpy, self._memory.data, _GUARD_BYTES)

    def is_intact(self) -> bool:
        """Whether the zones are as they were."""
        zones = (self._memory[:_GUARD_BYTES], self._memory[self._end :])
        return all(bool((zone == _UNWRITTEN).all()) for zone in zones)


def allowed_error(answer: Array, dtype: DType, has_floats: bool) -> Array:
    """How far each element may be from the answer, by broadcasting; `dtype` is that of the kernel.

    Floats: so much of the element itself and of what elements of this answer usually are. Whole
    numbers are exact, but for 8 bits that were rounded from floats: one off.
    """
    if not dtype.is_float:
        return np.array(1 if has_floats and dtype.is_int and dtype.size_bytes == 1 else 0)
    wide = answer if answer.dtype.itemsize >= 4 else answer.astype(np.float32)
    size = np.asarray(np.abs(wide))  # NumPy makes the only element of a scalar a number
    finite = size[np.isfinite(size)]
    size = np.nan_to_num(size, copy=False, nan=0.0, posinf=0.0)
    usual = float(np.quantile(finite, 0.9)) if finite.size else 0.0
    usual = usual or (float(finite.max()) if finite.size else 0.0)
    allowed: Array = _TOLERANCE[dtype] * (size + size.dtype.type(usual))
    return allowed


def find_difference(found: Array, answer: Array, allowed: Array) -> str:
    """What is wrong with an answer, "" if nothing is."""
    wide = np.float64 if answer.dtype.kind in "iub" else answer.dtype
    if answer.dtype.kind == "b":
        found = found.view(np.uint8)
        answer = answer.view(np.uint8)
    found = found.astype(wide, copy=False)
    answer = answer.astype(wide, copy=False)
    with np.errstate(all="ignore"):
        error = np.abs(found - answer)
        is_right = (error <= allowed) | (found == answer) | (np.isnan(found) & np.isnan(answer))
    if is_right.all():
        return ""
    wrong = np.argwhere(~is_right)
    place = tuple(int(i) for i in wrong[0])
    share = 100 * len(wrong) / max(1, answer.size)
    return (
        f"{len(wrong)} elements ({share:.3g} %) are wrong, first at {list(place)}: "
        f"{found[place]} and not {answer[place]}"
    )


_CORES = ("numpy._core._multiarray_umath", "numpy.core._multiarray_umath")
_NAMES = (
    ("scipy_openblas_", "64_"),
    ("scipy_openblas_", ""),
    ("openblas_", "64_"),
    ("openblas_", ""),
)


@dataclass(frozen=True, slots=True)
class _OpenBlas:
    """How many threads OpenBLAS uses: ask, and say."""

    get: Any
    set: Any


@contextmanager
def one_blas_thread() -> Iterator[bool]:
    """Inside the block products run on one thread; False where NumPy has another BLAS."""
    threads = _find_openblas()
    if threads is None:
        yield False
        return
    count = int(threads.get())
    threads.set(1)
    try:
        yield True
    finally:
        threads.set(count)


@lru_cache(maxsize=1)
def _find_openblas() -> _OpenBlas | None:
    """NumPy's extension module is linked with its OpenBLAS, whose names are found through it."""
    for name in _CORES:
        path = getattr(sys.modules.get(name), "__file__", None)
        if path is None:
            continue
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for prefix, suffix in _NAMES:
            get = getattr(library, f"{prefix}get_num_threads{suffix}", None)
            put = getattr(library, f"{prefix}set_num_threads{suffix}", None)
            if get is not None and put is not None:
                return _OpenBlas(get, put)
    return None
