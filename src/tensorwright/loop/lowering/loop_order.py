"""The variables of the loops around a stage, outermost first."""

from __future__ import annotations

from collections.abc import Set

from tensorwright.expr import Var, free_vars
from tensorwright.schedule import After, At, ScheduleState, Stage, analyse


def in_loop_order(state: ScheduleState, stage: Stage, used: Set[Var]) -> list[Var]:
    """The used variables, outermost loop first; a fused loop counts as the loops that it fused."""
    real = analyse(state).real
    leaves = _leaf_variables(state, stage, stage.loops[-1:])
    position = {var: n for n, var in enumerate(leaves)}
    created = {var: -n for n, var in enumerate(real)}

    def key(var: Var) -> tuple[int, int]:
        parts = free_vars(real[var]) if var in real else {var}
        return max(position[v] for v in parts), created.get(var, 0)

    return sorted(used, key=key)


def host_variables(state: ScheduleState, stage: Stage) -> list[Var]:
    """The variables of the loops around a placed stage as before fusions; none at the root."""
    if not isinstance(stage.placement, (At, After)):
        return []
    host = state.stage(stage.placement.stage)
    around: list[Var] = []
    for variable in _leaf_variables(state, host, (stage.placement.loop,)):
        fused = [v for v, real in analyse(state).real.items() if variable in free_vars(real)]
        around += fused[::-1] or [variable]  # the innermost comes first in the table
    return around


def _leaf_variables(state: ScheduleState, stage: Stage, last: tuple[str, ...]) -> list[Var]:
    """The variables of the loops around and down to `last` of a stage, outermost first."""
    order: list[Var] = []
    if isinstance(stage.placement, (At, After)):
        host = state.stage(stage.placement.stage)
        order += _leaf_variables(state, host, (stage.placement.loop,))
    variables = analyse(state).nests[stage.name].variables
    for loop in stage.loops:
        if loop in variables:
            order.append(variables[loop])
        if loop in last:
            break
    return order
