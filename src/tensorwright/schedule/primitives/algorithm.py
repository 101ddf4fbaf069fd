"""Compute a tensor by another algorithm."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from tensorwright.expr import Compute, Placeholder, topological_order
from tensorwright.schedule.algorithms import ALGORITHMS, Algorithm
from tensorwright.schedule.primitive import (
    Primitive,
    need_all_elements,
    need_new_stage,
    need_stage,
    need_unscheduled,
    refuse,
)
from tensorwright.schedule.state import ScheduleState, fresh_stage, redirect


@dataclass(frozen=True, slots=True)
class UseAlgorithm(Primitive):
    """Compute a tensor by another tensor expression that means the same.

    Rewrite:  C = f(A, B)   ->   C_1 = f_1(A); C_2 = f_2(B, C_1); ...; C = f_n(.., C_n-1)
              the stages of the algorithm take the place of the stage, the last has its name
    Requires: the algorithm is known and applies; the stage is not scheduled; the names of the new
              stages are free.
    """

    stage: str
    algorithm: str

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the algorithm may not be used."""
        stage = need_stage(self, state, self.stage)
        need_unscheduled(self, state, stage)
        need_all_elements(self, state, stage)
        algorithm = _find(self.algorithm)
        if algorithm is None:
            names = ", ".join(each.name for each in ALGORITHMS)
            raise refuse(self, state, f"there is no algorithm {self.algorithm}", f"one of {names}")
        parts = _parts(algorithm, stage.tensor)
        if parts is None:
            reason = f"{self.algorithm} does not compute what {self.stage} is"
            raise refuse(self, state, reason, "", (self.stage, ""))
        for part in parts[:-1]:
            need_new_stage(self, state, part.name)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the stages of the algorithm."""
        algorithm = _find(self.algorithm)
        assert algorithm is not None, "checked"
        parts = _parts(algorithm, state.stage(self.stage).tensor)
        assert parts is not None, "checked"
        return state.with_stages(self.stage, *map(fresh_stage, parts))


def uses_algorithm(steps: Iterable[Primitive]) -> bool:
    """Whether some steps compute a tensor by an algorithm that rounds otherwise."""
    used = [_find(step.algorithm) for step in steps if isinstance(step, UseAlgorithm)]
    return any(algorithm is None or algorithm.rounds for algorithm in used)


def _find(name: str) -> Algorithm | None:
    return next((each for each in ALGORITHMS if each.name == name), None)


@lru_cache(maxsize=16)
def _parts(algorithm: Algorithm, tensor: Compute) -> tuple[Compute, ...] | None:
    """The tensors of the algorithm, in order, reading each other by name; None if it does not
    apply.
    """
    result = algorithm.rewrite(tensor)
    if result is None:
        return None
    order = topological_order(result)
    stand_ins = {each.name: Placeholder(each.name, each.shape, each.dtype) for each in order}
    return tuple(redirect(each, stand_ins) for each in order if isinstance(each, Compute))
