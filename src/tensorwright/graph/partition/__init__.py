"""Cut a graph into workloads. Read `grouping.py` first (the criteria), then `steps.py`.

`proposals.py` finds the open questions of the criteria, and `by_price.py` decides them by predicted
times. `short.py` decides in the same way which tensors stay bf16.
"""

from tensorwright.graph.partition.by_price import Alternative, Decisions, Price
from tensorwright.graph.partition.grouping import FEW_COLUMNS, Limits
from tensorwright.graph.partition.nesting import elide_concats
from tensorwright.graph.partition.partition import (
    kernels_of_groups, likely_workloads, partition, usual_groups, verify_partition,
)
from tensorwright.graph.partition.steps import (
    AliasCall, BranchCall, CollectCall, ConcatInPlace, CopyCall, KernelCall, LoopCall, OpaqueCall,
    Partition, Step, Tensors, bind_partition, bound_workloads, check_memory, writes_of_step,
)
