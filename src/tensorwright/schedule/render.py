"""Print a schedule state as the loops that it stands for, with one loop marked."""

from __future__ import annotations

from tensorwright.base import HERE, Printer
from tensorwright.schedule.state import After, At, AtRoot, ScheduleState, Stage


def render(state: ScheduleState, mark: tuple[str, str] | None = None) -> str:
    """The loops of every stage, outermost first; `mark` is (stage, loop), loop "" for the stage's
    statement.

    Extents are shown for the loops of stages at the root; inside another stage they depend on its
    tile.
    """
    page = Printer()
    for stage in state.stages:
        if isinstance(stage.placement, AtRoot):
            _render_stage(state, stage, page, mark)
    return str(page)


def _render_stage(
    state: ScheduleState, stage: Stage, page: Printer, mark: tuple[str, str] | None
) -> None:
    _render_loops(state, stage, 0, page, mark)


def _render_loops(
    state: ScheduleState, stage: Stage, depth: int, page: Printer, mark: tuple[str, str] | None
) -> None:
    if depth == len(stage.loops):
        page.line(_statement(stage), HERE if mark == (stage.name, "") else "")
        return
    loop = stage.loops[depth]
    note = stage.kind(loop).note
    if mark == (stage.name, loop):
        note = f"{note}  {HERE}".strip()
    with page.block(f"for {loop}:", note):
        for each in state.stages:
            if each.placement == At(stage.name, loop):
                _render_stage(state, each, page, mark)
        _render_loops(state, stage, depth + 1, page, mark)
        for each in state.stages:
            if each.placement == After(stage.name, loop):
                _render_stage(state, each, page, mark)


def _statement(stage: Stage) -> str:
    tensor = stage.tensor
    element = f"{tensor.name}[{', '.join(axis.name for axis in tensor.axes)}]"
    if tensor.reduction is None:
        return f"{element} = {tensor.body}"
    return f"{element} = {tensor.reduction.combiner.value}({element}, {tensor.body})"
