"""Graphs: networks as lists of operator applications. Read `graph.py` first, then `builder.py` and
`interpret.py`.

`passes/` simplifies. `imports/` reads ONNX models, `imports/aten/` exported graphs of
PyTorch, `model_import/` either, and `onnx_export/` writes ONNX: all need the package onnx, so this
folder does not import them.
"""

from tensorwright.graph.builder import GraphBuilder
from tensorwright.graph.graph import (
    PLAIN, Graph, Layout, Node, are_alike, free_name, rename_tensors,
)
from tensorwright.graph.infer import operator_of, verify
from tensorwright.graph.interpret import interpret, last_uses, random_inputs, run_node
from tensorwright.graph.joined_products import join_products
from tensorwright.graph.layout import choose_layouts, conversions, describe_layouts
from tensorwright.graph.nested import require_alone
from tensorwright.graph.partition import (
    AliasCall, BranchCall, CollectCall, ConcatInPlace, CopyCall, KernelCall, Limits, LoopCall,
    OpaqueCall, Partition, Price, Step, Tensors, bind_partition, bound_workloads, check_memory,
    elide_concats, likely_workloads, partition, verify_partition, writes_of_step,
)
from tensorwright.graph.own_sizes import OwnSizes, with_own_sizes
from tensorwright.graph.passes import (
    PASSES, FoldedConstants, compute_float16_as_float32, round_operands, run_target_passes,
    simplify,
)
from tensorwright.graph.physical import physical_shape, to_physical
from tensorwright.graph.size_points import SizePoint, SizesAt, between, points_of
from tensorwright.graph.sizes import (
    bind_sizes, counted_bounds, counted_size_of, counted_sizes, least_sizes, representative,
    require_numbers, require_uncounted, typical_shape,
)
from tensorwright.graph.states import InPlace, State, for_outputs, states_in_place
from tensorwright.graph.workload import (
    Constants, Program, Workload, as_program, bind_workload, build_workload, check_constants,
    program, reference,
)
