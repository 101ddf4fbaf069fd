"""Cut a graph into workloads. Read `grouping.py` first (the criteria), then `steps.py`.

`proposals.py` finds the open questions of the criteria, and `by_price.py` decides them by predicted
times.
"""

from tensorwright.graph.partition.binding import bind_partition, bound_workloads
from tensorwright.graph.partition.concat import elide_concats
from tensorwright.graph.partition.grouping import Limits, group_nodes
from tensorwright.graph.partition.memory import check_memory
from tensorwright.graph.partition.partition import likely_workloads, partition
from tensorwright.graph.partition.pricing import Alternative, Decisions, Price
from tensorwright.graph.partition.steps import (
    AliasCall,
    BranchCall,
    CollectCall,
    ConcatInPlace,
    CopyCall,
    KernelCall,
    LoopCall,
    OpaqueCall,
    Partition,
    Step,
    Tensors,
    writes_of_step,
)
from tensorwright.graph.partition.verify import verify_partition
from tensorwright.graph.partition.views import moves_nothing

__all__ = [
    "AliasCall",
    "Alternative",
    "BranchCall",
    "CollectCall",
    "ConcatInPlace",
    "CopyCall",
    "Decisions",
    "KernelCall",
    "Limits",
    "LoopCall",
    "OpaqueCall",
    "Partition",
    "Price",
    "Step",
    "Tensors",
    "bind_partition",
    "bound_workloads",
    "check_memory",
    "elide_concats",
    "group_nodes",
    "likely_workloads",
    "moves_nothing",
    "partition",
    "verify_partition",
    "writes_of_step",
]
