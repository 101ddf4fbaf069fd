"""A tuning session: rounds of proposing, building and measuring. Read `session.py` first."""

from tensorwright.tuning.session.arguments import (
    Budget,
    SearchArguments,
    SessionParts,
    SessionSetting,
    TuneOptions,
)
from tensorwright.tuning.session.in_network import choose_in_network, options_of
from tensorwright.tuning.session.interrupt import Interrupt
from tensorwright.tuning.session.last_comparison import compare_programs
from tensorwright.tuning.session.over_sizes import SizedInstance, choose_over_sizes
from tensorwright.tuning.session.progress import (
    Callback,
    Drift,
    LiveTable,
    Phase,
    PlainLines,
    Progress,
    TaskRow,
    choose_callbacks,
)
from tensorwright.tuning.session.result import (
    Comparison,
    NetworkResult,
    StopReason,
    TaskResult,
    TuneResult,
)
from tensorwright.tuning.session.seeds import is_replayable
from tensorwright.tuning.session.session import check_measures_here, make_space, tune

__all__ = [
    "Budget",
    "Callback",
    "Comparison",
    "Drift",
    "Interrupt",
    "LiveTable",
    "NetworkResult",
    "Phase",
    "PlainLines",
    "Progress",
    "SearchArguments",
    "SessionParts",
    "SessionSetting",
    "SizedInstance",
    "StopReason",
    "TaskResult",
    "TaskRow",
    "TuneOptions",
    "TuneResult",
    "check_measures_here",
    "choose_callbacks",
    "choose_in_network",
    "choose_over_sizes",
    "compare_programs",
    "is_replayable",
    "make_space",
    "options_of",
    "tune",
]
