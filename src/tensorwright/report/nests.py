"""The loop nests of workloads under the default and the best schedule."""

from __future__ import annotations

from tensorwright.base import Target, TensorwrightError
from tensorwright.build import loop_program
from tensorwright.report.numbers import Values
from tensorwright.schedule import Workload, parse_schedule

_MOST_CHARACTERS = 12_000
_CUT = "\n... (cut: {} more characters; `tensorwright inspect --what loop` shows all)"


def nest_values(workload: Workload, target: Target, schedules: dict[str, str]) -> Values:
    """The text of the loop nest of each schedule, or the reason why it cannot be lowered."""
    texts: Values = {}
    for name, schedule in schedules.items():
        try:
            text = str(loop_program(workload, parse_schedule(schedule), target))
        except TensorwrightError as error:
            text = f"it cannot be shown: {error.reason}"
        rest = len(text) - _MOST_CHARACTERS
        texts[name] = text if rest <= 0 else text[:_MOST_CHARACTERS] + _CUT.format(rest)
    return texts
