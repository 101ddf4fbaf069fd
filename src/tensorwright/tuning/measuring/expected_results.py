"""The inputs on which a candidate is tried, and the answers that it must compute.

Both sides make the inputs from a recipe, so that no weights are sent; the expected answers, which
NumPy computes once per workload, are passed as files.  There are two turns of inputs, with the same
constants: one for before a candidate is timed, one for after.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from tensorwright.base import DType, InternalError
from tensorwright.expr import Array, Compute, Placeholder, Tensor, evaluate, topological_order
from tensorwright.schedule import Workload
from tensorwright.tuning.measuring.blas_threads import one_blas_thread
from tensorwright.tuning.measuring.trial_inputs import Recipe, make_inputs, specs_of

Answer: TypeAlias = tuple[Array, ...]

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
    tensors = topological_order(*workload.outputs)
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


def _try_turns(workload: Workload, tensors: Sequence[Tensor], recipe: Recipe) -> list[Answer]:
    """The answers of both turns; none if one of them reads outside of its tensors."""
    answers: list[Answer] = []
    for one in (recipe, _next_turn(recipe)):
        answer = _try_inputs(workload, tensors, one)
        if answer is None:
            return []
        answers.append(answer)
    return answers


def _try_inputs(workload: Workload, tensors: Sequence[Tensor], recipe: Recipe) -> Answer | None:
    arrays = make_inputs(recipe)
    given = {one: arrays[one.name] for one in tensors if isinstance(one, Placeholder)}
    try:
        with np.errstate(all="ignore"), one_blas_thread():
            return evaluate(workload.outputs, given)
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
    tensors: Sequence[Tensor],
    recipe: Recipe,
    answers: Sequence[Answer],
    folder: Path,
) -> ExpectedResults:
    first, second = (_save_answer(workload.outputs, answer, folder) for answer in answers)
    has_floats = any(tensor.dtype.is_float for tensor in tensors)
    return ExpectedResults(workload.key, recipe, first, has_floats, second)


def _save_answer(
    outputs: tuple[Compute, ...], answer: Answer, folder: Path
) -> tuple[tuple[str, DType, str], ...]:
    files = []
    kept = Path(tempfile.mkdtemp(prefix="answer-", dir=folder))
    for number, (tensor, array) in enumerate(zip(outputs, answer, strict=True)):
        path = kept / f"{number}.npy"
        stored = array.astype(np.float32) if tensor.dtype is DType.BF16 else array
        np.save(path, stored)
        files.append((tensor.name, tensor.dtype, str(path)))
    return tuple(files)
