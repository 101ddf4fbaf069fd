"""Search for fast schedules, measured on this machine.

Read `space/` first (what may be tried), then `strategy.py` (who proposes), `build.py` and
`measure.py` (how a candidate gets its times), and `session.py` (who puts it together). A new
strategy or scheduler is one file that keeps the protocol, given to `tune` as an argument.

The package can be called: `tensorwright.tune(expression)`, see `calling.py`.
"""

import sys

from tensorwright.tune.assemble import assemble, assemble_workload
from tensorwright.tune.best import best_record, best_trace
from tensorwright.tune.build import (
    Builder,
    BuildFailed,
    BuildRequest,
    BuildResult,
    BuildStopped,
    Built,
    PoolBuilder,
    build,
    build_request,
)
from tensorwright.tune.cached_build import build_cached
from tensorwright.tune.calling import CallableModule
from tensorwright.tune.derive import (
    Derivation,
    SketchRule,
    Verdict,
    register_sketch_rule,
    sketch_rule,
    unregister_sketch_rule,
)
from tensorwright.tune.gradient_scheduler import GradientScheduler
from tensorwright.tune.in_network import (
    NetworkChoice,
    choose_in_network,
    load_choice,
    options_of,
    save_choice,
)
from tensorwright.tune.interrupt import Interrupt
from tensorwright.tune.jobs import Job
from tensorwright.tune.measure import ChildRunner, Runner, hold_turn
from tensorwright.tune.objective import (
    LatencyRequirement,
    MeanSpeedUp,
    NetworkTimes,
    Objective,
    TotalLatency,
)
from tensorwright.tune.pool import WorkerPool
from tensorwright.tune.progress import (
    Callback,
    LiveTable,
    Phase,
    PlainLines,
    Progress,
    TaskRow,
    choose_callbacks,
)
from tensorwright.tune.random_search import RandomSearch
from tensorwright.tune.result import StopReason, TaskResult, TuneOptions, TuneResult
from tensorwright.tune.scheduler import (
    RoundRobinScheduler,
    Scheduler,
    TaskState,
)
from tensorwright.tune.session import tune
from tensorwright.tune.space import (
    Choice,
    Limit,
    Sketch,
    SketchBuilder,
    Space,
    default_trace,
    rule_sketches,
    space_of,
)
from tensorwright.tune.strategy import Candidate, Strategy, StrategyFactory
from tensorwright.tune.task import Task
from tensorwright.tune.trial import Measurement, MeasureOptions

__all__ = [
    "BuildFailed",
    "BuildRequest",
    "BuildResult",
    "BuildStopped",
    "Builder",
    "Built",
    "Callback",
    "Candidate",
    "ChildRunner",
    "Choice",
    "Derivation",
    "GradientScheduler",
    "Interrupt",
    "Job",
    "LatencyRequirement",
    "Limit",
    "LiveTable",
    "MeanSpeedUp",
    "MeasureOptions",
    "Measurement",
    "NetworkChoice",
    "NetworkTimes",
    "Objective",
    "Phase",
    "PlainLines",
    "PoolBuilder",
    "Progress",
    "RandomSearch",
    "RoundRobinScheduler",
    "Runner",
    "Scheduler",
    "Sketch",
    "SketchBuilder",
    "SketchRule",
    "Space",
    "StopReason",
    "Strategy",
    "StrategyFactory",
    "Task",
    "TaskResult",
    "TaskRow",
    "TaskState",
    "TotalLatency",
    "TuneOptions",
    "TuneResult",
    "Verdict",
    "WorkerPool",
    "assemble",
    "assemble_workload",
    "best_record",
    "best_trace",
    "build",
    "build_cached",
    "build_request",
    "choose_callbacks",
    "choose_in_network",
    "default_trace",
    "hold_turn",
    "load_choice",
    "options_of",
    "register_sketch_rule",
    "rule_sketches",
    "save_choice",
    "sketch_rule",
    "space_of",
    "tune",
    "unregister_sketch_rule",
]

sys.modules[__name__].__class__ = CallableModule
