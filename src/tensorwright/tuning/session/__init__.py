"""A tuning session: rounds of proposing, building and measuring. Read `session.py` first."""

from tensorwright.tuning.session.in_network import choose_in_network, options_of
from tensorwright.tuning.session.interrupt import Interrupt
from tensorwright.tuning.session.progress import (
    Callback,
    LiveTable,
    Phase,
    PlainLines,
    Progress,
    TaskRow,
    choose_callbacks,
)
from tensorwright.tuning.session.result import StopReason, TaskResult, TuneOptions, TuneResult
from tensorwright.tuning.session.session import tune

__all__ = [
    "Callback",
    "Interrupt",
    "LiveTable",
    "Phase",
    "PlainLines",
    "Progress",
    "StopReason",
    "TaskResult",
    "TaskRow",
    "TuneOptions",
    "TuneResult",
    "choose_callbacks",
    "choose_in_network",
    "options_of",
    "tune",
]
