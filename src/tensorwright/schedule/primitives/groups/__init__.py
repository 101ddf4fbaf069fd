"""The primitives for groups of threads: what a graphics processor has and a processor has not."""

from tensorwright.schedule.primitives.groups.block_order import BlockOrder
from tensorwright.schedule.primitives.groups.cooperate import Cooperate
from tensorwright.schedule.primitives.groups.launch_bounds import LaunchBounds
from tensorwright.schedule.primitives.groups.layout import Layout
from tensorwright.schedule.primitives.groups.pipeline import Pipeline
from tensorwright.schedule.primitives.groups.set_scope import SetScope
from tensorwright.schedule.primitives.groups.shuffle_reduce import ShuffleReduce
from tensorwright.schedule.primitives.groups.split_axis import SplitAxis
from tensorwright.schedule.primitives.groups.split_reduction import SplitReduction

__all__ = [
    "BlockOrder",
    "Cooperate",
    "LaunchBounds",
    "Layout",
    "Pipeline",
    "SetScope",
    "ShuffleReduce",
    "SplitAxis",
    "SplitReduction",
]
