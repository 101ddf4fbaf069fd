"""The inputs on which a candidate is tried, and the answers that it must compute.

Both sides make the inputs from a recipe, so that no weights are sent; the expected answers, which
NumPy computes once per workload, are passed as files.  There are two turns of inputs, with the same
constants: one for before a candidate is timed, one for after.

How many threads NumPy's products use, so that they leave the other cores alone.

The inputs on which a candidate is tried, drawn from a recipe, so that no weights are sent.

Weights are as small as those of networks: sums of many products then are as large as the other
inputs, and functions that saturate after them show what was computed.
"""

from __future__ import annotations

import ctypes
import math
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from tensorwright import expr
from tensorwright.base import DType, InternalError
from tensorwright.runtime import empty
from tensorwright.schedule import Workload

_CORES = ("numpy._core._multiarray_umath", "numpy.core._multiarray_umath")
_NAMES = (
    ("scipy_openblas_", "64_"),
    ("scipy_openblas_", ""),
    ("openblas_", "64_"),
    ("openblas_", ""),
)


@dataclass(frozen=True, slots=True)
class _OpenBlas:
    """Gets and sets the number of OpenBLAS's threads."""

    get: Any
    set: Any


@contextmanager
def one_blas_thread() -> Iterator[bool]:
    """Run products on one thread inside the block; False if NumPy has another BLAS."""
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


@dataclass(frozen=True, slots=True)
class InputSpec:
    """How an input is filled: integers over 0..high-1 if that is not 0, floats times `scale`."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    high: int = 0
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Recipe:
    """How all inputs of a workload are filled.

    is_positive: floats in 0.5..1 and not in -1..1, for functions that are undefined below zero;
                 both times the scale of the input.
    turn:        which draw; inputs among `constants` are the same in all of them
    """

    inputs: tuple[InputSpec, ...]
    seed: int = 0
    is_positive: bool = False
    turn: int = 0
    constants: frozenset[str] = frozenset()


def make_inputs(
    recipe: Recipe, made: Mapping[str, expr.Array] | None = None
) -> dict[str, expr.Array]:
    """Fill the inputs; equal recipes give equal arrays, aligned as kernels need them.

    made   inputs of another turn, whose constants are taken
    """
    arrays: dict[str, expr.Array] = {}
    for number, spec in enumerate(recipe.inputs):
        is_constant = spec.name in recipe.constants
        if made is not None and is_constant:
            arrays[spec.name] = made[spec.name]
            continue
        turn = [recipe.turn] if recipe.turn and not is_constant else []
        source = np.random.Generator(np.random.SFC64([recipe.seed, number, *turn]))
        array = empty(spec.shape, spec.dtype)
        array[...] = _draw(spec, source, recipe.is_positive)
        arrays[spec.name] = array
    return arrays


def _draw(spec: InputSpec, source: np.random.Generator, is_positive: bool) -> expr.Array:
    if spec.dtype is DType.BOOL:
        return source.integers(0, 2, spec.shape).astype(np.bool_)
    if spec.dtype.is_float:
        wide = DType.F64 if spec.dtype is DType.F64 else DType.F32
        drawn: Any = source.random(spec.shape, np.dtype(wide.numpy))  # type: ignore[arg-type]
        drawn = 0.5 + drawn / 2 if is_positive else drawn * 2 - 1
        return np.asarray(drawn * wide.numpy.type(spec.scale)).astype(spec.dtype.numpy)
    if spec.high:
        return source.integers(0, spec.high, spec.shape).astype(spec.dtype.numpy)
    low, high = max(int(spec.dtype.lowest), -100), min(int(spec.dtype.highest), 255)
    return source.integers(low, high, spec.shape, endpoint=True).astype(spec.dtype.numpy)


def index_reach(tensors: Sequence[expr.Tensor]) -> dict[str, int]:
    """For each tensor that serves as an index, the smallest extent that it indexes."""
    reach: dict[str, int] = {}
    for tensor in tensors:
        if not isinstance(tensor, expr.Compute):
            continue
        for index, extent in _indices(tensor.body):
            for atom in expr.atoms_of(index):
                if isinstance(atom, expr.Element):
                    name = atom.source.name
                    reach[name] = min(reach.get(name, extent), extent)
    return reach


def _indices(value: expr.Value) -> Iterator[tuple[expr.Index, int]]:
    """Every index expression in a value with the extent that it must stay below."""
    match value:
        case expr.Load(source, indices):
            for index, extent in zip(indices, source.shape, strict=True):
                yield index, _bound(extent)
        case expr.FromIndex(index, _):
            yield index, 1 << 31
        case expr.Select(condition, _, _) if not isinstance(condition, bool | expr.ValueExpr):
            for side in expr.condition_sides(condition):
                yield side, 1 << 31
        case _:
            pass
    for child in expr.children(value):
        yield from _indices(child)


def _bound(extent: expr.Index) -> int:
    if not isinstance(extent, int):
        raise InternalError(stage="tune", where="workload", reason=f"extent {extent} is open")
    return extent


def specs_of(tensors: Sequence[expr.Tensor], most: int) -> tuple[InputSpec, ...]:
    """How the inputs among the tensors are filled; those used as indices stay below `most`."""
    reach = index_reach(tensors)
    scales = weight_scales(tensors)
    return tuple(
        _spec(tensor, reach, most, scales.get(tensor.name, 1.0))
        for tensor in tensors
        if isinstance(tensor, expr.Placeholder)
    )


def _spec(tensor: expr.Placeholder, reach: dict[str, int], most: int, scale: float) -> InputSpec:
    shape = tuple(_bound(extent) for extent in tensor.shape)
    high = max(1, min(reach[tensor.name], most, 1 << 20)) if tensor.name in reach else 0
    if high and tensor.dtype.is_int:
        high = min(high, int(tensor.dtype.highest))
    return InputSpec(tensor.name, shape, tensor.dtype, high, scale)


def weight_scales(tensors: Sequence[expr.Tensor]) -> dict[str, float]:
    """The factors of weights that keep sums of products in about -1..1.

    Weights are the smallest input among the factors; of n terms in -1..1 the sum has a variance of
    n/9, so sqrt(3/n) gives it the 1/3 of the other inputs (He et al., ICCV 2015, section 2.2).
    """
    scales: dict[str, float] = {}
    for tensor in tensors:
        if not isinstance(tensor, expr.Compute) or tensor.reduction is None:
            continue
        factors = set(_factors(tensor.body))  # one where a tensor is squared: that has no weights
        inputs = [factor.source for factor in factors if _is_float_input(factor)]
        if tensor.reduction.combiner is not expr.Combiner.SUM or len(factors) < 2 or not inputs:
            continue
        terms = math.prod(_bound(axis.extent) for axis in tensor.reduce_axes)
        weights = min(inputs, key=lambda one: math.prod(_bound(extent) for extent in one.shape))
        scale = min(1.0, math.sqrt(3 / max(1, terms)))
        scales[weights.name] = min(scale, scales.get(weights.name, 1.0))
    return scales


def _factors(value: expr.Value) -> Iterator[expr.Value]:
    """The factors of products, without the guards around them."""
    match value:
        case expr.Apply(expr.Fn.MUL, args):
            for arg in args:
                yield from _factors(arg)
        case expr.Select(_, then, _):
            yield from _factors(then)
        case expr.Cast(operand, _):
            yield from _factors(operand)
        case _:
            yield value


def _is_float_input(factor: expr.Value) -> TypeGuard[expr.Load]:
    if not isinstance(factor, expr.Load):
        return False
    return isinstance(factor.source, expr.Placeholder) and factor.source.dtype.is_float


Answer: TypeAlias = tuple[expr.Array, ...]

_MOST_UNDEFINED = 0.01  # share of an output that may be NaN before other inputs are tried


@dataclass(frozen=True, slots=True)
class ExpectedResults:
    """A workload's trial: the recipe, and per output its name, type and file (.npy).

    again   the files of the outputs for the recipe of the second turn, `recipe_again`

    bf16, which NumPy's files do not know, is kept as f32.
    """

    key: str
    recipe: Recipe
    outputs: tuple[tuple[str, DType, str], ...]
    has_floats: bool
    again: tuple[tuple[str, DType, str], ...]

    @property
    def recipe_again(self) -> Recipe:
        """That of the second turn."""
        return _next_turn(self.recipe)


def make_expected_results(workload: Workload, folder: Path, seed: int = 0) -> ExpectedResults:
    """Choose inputs for which the workload is defined, and compute its answer in NumPy.

    Inputs that serve as indices must stay inside of what they index. If the extents do not bound
    them, smaller and smaller ranges are tried.

    Raises:  InternalError if none fits.
    """
    tensors = expr.topological_order(*workload.outputs)
    fallback: tuple[Recipe, list[Answer]] | None = None
    for most in (1 << 31, 8, 2, 1):
        specs = specs_of(tensors, most)
        for is_positive in (False, True):
            recipe = Recipe(specs, seed, is_positive, constants=workload.constants)
            answers = _try_turns(workload, tensors, recipe)
            if answers and all(map(_is_defined, answers)):
                return _save(workload, tensors, recipe, answers, folder)
            if answers and fallback is None:
                fallback = recipe, answers
        if not any(spec.high for spec in specs):
            break
    if fallback is None:
        raise InternalError(
            stage="tune",
            where=f"workload {workload.name}",
            reason="no inputs were found for which it reads inside of its tensors only",
        )
    return _save(workload, tensors, *fallback, folder)


def _next_turn(recipe: Recipe) -> Recipe:
    return replace(recipe, turn=recipe.turn + 1)


def _try_turns(workload: Workload, tensors: Sequence[expr.Tensor], recipe: Recipe) -> list[Answer]:
    """The answers of both turns; none if one of them reads outside of its tensors."""
    answers: list[Answer] = []
    for one in (recipe, _next_turn(recipe)):
        answer = _try_inputs(workload, tensors, one)
        if answer is None:
            return []
        answers.append(answer)
    return answers


def _try_inputs(
    workload: Workload, tensors: Sequence[expr.Tensor], recipe: Recipe
) -> Answer | None:
    arrays = make_inputs(recipe)
    given = {one: arrays[one.name] for one in tensors if isinstance(one, expr.Placeholder)}
    try:
        with np.errstate(all="ignore"), one_blas_thread():
            return expr.evaluate(workload.outputs, given)
    except IndexError:
        return None


def _is_defined(answer: Answer) -> bool:
    for array in answer:
        if array.size and array.dtype.kind not in "iub":
            finite = np.isfinite(array.astype(np.float64, copy=False))
            if 1 - np.mean(finite) > _MOST_UNDEFINED:
                return False
    return True


def _save(
    workload: Workload,
    tensors: Sequence[expr.Tensor],
    recipe: Recipe,
    answers: Sequence[Answer],
    folder: Path,
) -> ExpectedResults:
    first, second = (_save_answer(workload.outputs, answer, folder) for answer in answers)
    has_floats = any(tensor.dtype.is_float for tensor in tensors)
    return ExpectedResults(workload.key, recipe, first, has_floats, second)


def _save_answer(
    outputs: tuple[expr.Compute, ...], answer: Answer, folder: Path
) -> tuple[tuple[str, DType, str], ...]:
    files = []
    kept = Path(tempfile.mkdtemp(prefix="answer-", dir=folder))
    for number, (tensor, array) in enumerate(zip(outputs, answer, strict=True)):
        path = kept / f"{number}.npy"
        stored = array.astype(np.float32) if tensor.dtype is DType.BF16 else array
        np.save(path, stored)
        files.append((tensor.name, tensor.dtype, str(path)))
    return tuple(files)
