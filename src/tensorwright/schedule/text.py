"""The text of a schedule step: `split(conv, ow, [14], shift)`, from a record's fields and back.

Print a schedule state as the loops that it stands for, with one loop marked.
"""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from enum import Enum
from functools import lru_cache
from typing import Any, get_type_hints

from tensorwright.base import HERE, Printer, UsageError, did_you_mean
from tensorwright.expr import Decision
from tensorwright.schedule.state import After, At, AtRoot, ScheduleState, Stage

_STEP = re.compile(r"\s*(\w+)\((.*)\)\s*$")
_NAME = re.compile(r"[A-Za-z_][\w.]*$")


def snake_case(name: str) -> str:
    """`ComputeAt` -> `compute_at`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def step_text(step: Any) -> str:
    """The step as it stands in a trace, without trailing arguments that are the default."""
    listed = fields(step)
    values = [getattr(step, field.name) for field in listed]
    while values and listed[len(values) - 1].default == values[-1]:
        values.pop()
    return f"{snake_case(type(step).__name__)}({', '.join(map(_argument, values))})"


def _argument(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_argument, value))}]"
    return str(value.value) if isinstance(value, Enum) else str(value)


def parse_step(text: str, kinds: dict[str, type]) -> Any:
    """Read a step; `kinds` maps the names of steps to their records.

    Raises: UsageError for an unknown step, a wrong number of arguments or an argument that does not
              parse.
    """
    match = _STEP.match(text)
    kind = kinds.get(match[1]) if match else None
    if match is None or kind is None:
        names = sorted(kinds)
        shape = f"name(arguments) with a name of {', '.join(names)}"
        remedy = did_you_mean(match[1], names, shape) if match else shape
        raise _bad(text, "this is not a schedule step", remedy)
    arguments = _split_arguments(match[2], text)
    hints = _hints(kind)
    listed = fields(kind)
    needed = sum(field.default is MISSING for field in listed)
    if not needed <= len(arguments) <= len(listed):
        shape = ", ".join(field.name for field in listed)
        raise _bad(text, f"it has {len(arguments)} arguments", f"{match[1]}({shape})")
    values = {
        field.name: _parse_argument(argument, hints[field.name], text)
        for field, argument in zip(listed, arguments, strict=False)
    }
    return kind(**values)


@lru_cache(maxsize=256)
def _hints(kind: type) -> dict[str, Any]:
    """The types of the fields of a step."""
    return get_type_hints(kind)


def _split_arguments(text: str, step: str) -> list[str]:
    parts: list[str] = []
    depth = 0
    start = 0
    for position, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    if depth:
        raise _bad(step, "a bracket is not closed", "write lists as [a, b]")
    last = text[start:].strip()
    return [*parts, last] if last or parts else []


def _parse_argument(text: str, hint: Any, step: str) -> object:
    if text.startswith("["):
        inner = hint.__args__[0] if getattr(hint, "__args__", ()) else hint
        return tuple(_parse_argument(t, inner, step) for t in _split_arguments(text[1:-1], step))
    if isinstance(hint, type) and issubclass(hint, Enum):
        for member in hint:
            if member.value == text:
                return member
        members = ", ".join(str(member.value) for member in hint)
        raise _bad(step, f"{text} is not a {hint.__name__.lower()}", f"one of {members}")
    if hint is str:
        if not _NAME.match(text):
            raise _bad(step, f"{text!r} is not a name", "letters, digits, _ and .")
        return text
    if text.startswith("?") and _NAME.match(text[1:]):
        return Decision(text[1:])
    try:
        return int(text)
    except ValueError:
        raise _bad(step, f"{text!r} is not a number", "an int or ?decision") from None


def _bad(step: str, reason: str, remedy: str) -> UsageError:
    return UsageError(stage="schedule", where=f"step {step!r}", reason=reason, remedy=remedy)


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
