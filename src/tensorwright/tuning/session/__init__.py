"""A tuning session: rounds of proposing, building and measuring. Read `session.py` first."""

from tensorwright.tuning.session.arguments import Options, SessionParts
from tensorwright.tuning.session.in_network import choose_in_network, schedules_worth_trying
from tensorwright.tuning.session.over_sizes import SizedInstance, choose_over_sizes
from tensorwright.tuning.session.progress import (
    Callback, Drift, Interrupt, LiveTable, Phase, PlainLines, Progress, choose_callbacks,
)
from tensorwright.tuning.session.ranking import is_replayable
from tensorwright.tuning.session.result import (
    Comparison, NetworkResult, StopReason, TaskResult, TuneResult, compare_programs,
)
from tensorwright.tuning.session.session import check_measures_here, make_space, tune
