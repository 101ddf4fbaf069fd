"""The code that compiled programs need at run time.

From machine code upwards: native/ (jit.py: from object code to callable addresses), caches/.
From the user downwards: plan/plan.py (the steps of an executable, as data), plan/planner.py (makes
plans), plan/teams.py (which steps share leased threads), device.py (the protocol of devices),
host.py (the first one), executable.py, frame.py (the memory of one call), native/driver.py (steps
in native code), container.py (the file format).  Running does not need measuring/; import it
separately.
"""

from tensorwright.runtime.bound_call import Bound
from tensorwright.runtime.buffers import ALIGNMENT, empty, is_kernel_ready, kernel_ready
from tensorwright.runtime.caches import (
    ExecutableCache,
    KernelCache,
    default_cache,
    default_executable_cache,
    named_cache,
)
from tensorwright.runtime.container import Contents, is_executable, read_container, write_container
from tensorwright.runtime.device import (
    DEVICES,
    Device,
    DeviceFacts,
    Function,
    Memory,
    Missing,
    check_device,
    device_facts,
    device_of,
    missing_device,
    named_target,
)
from tensorwright.runtime.dlpack import DeviceArray
from tensorwright.runtime.executable import Executable, StepTime
from tensorwright.runtime.host import HOST, HostDevice
from tensorwright.runtime.inputs import (
    Port,
    check_array,
    check_inputs,
    check_names,
    random_array,
)
from tensorwright.runtime.loader import load
from tensorwright.runtime.native.jit import (
    LoadedFunction,
    LoadedObject,
    load_function,
    load_ir,
    load_object,
)
from tensorwright.runtime.native.loaded_code import LoadedCode, load_code
from tensorwright.runtime.native.pool import float_bits, usable_threads
from tensorwright.runtime.native.pool.pending_run import PendingRun
from tensorwright.runtime.plan.arena import Lifetime, plan_memory
from tensorwright.runtime.plan.call_sizes import chosen_values
from tensorwright.runtime.plan.capacity import with_room
from tensorwright.runtime.plan.plan import (
    ArenaRef,
    ArgumentSpec,
    BranchStep,
    BufferRef,
    Call,
    CollectStep,
    ConstantRef,
    CopyStep,
    DeviceRef,
    HostStep,
    InputRef,
    KernelSpec,
    KernelStep,
    LoopStep,
    OutputRef,
    Plan,
    Step,
    Team,
    TensorSpec,
    TypedRef,
    blocks_of,
    bytes_of_type,
    host_ref,
    is_native,
)
from tensorwright.runtime.plan.plan_json import plan_from_data, plan_to_data
from tensorwright.runtime.plan.plan_sizes import PlanSize
from tensorwright.runtime.plan.plan_verify import Span, spans_of_step, verify_plan
from tensorwright.runtime.plan.planner import (
    CopyTensor,
    Inside,
    Network,
    amount_of,
    kernel_spec,
    make_plan,
)
from tensorwright.runtime.plan.teams import choose_teams, estimate_seconds, without_teams

__all__ = [
    "ALIGNMENT",
    "DEVICES",
    "HOST",
    "ArenaRef",
    "ArgumentSpec",
    "Bound",
    "BranchStep",
    "BufferRef",
    "Call",
    "CollectStep",
    "ConstantRef",
    "Contents",
    "CopyStep",
    "CopyTensor",
    "Device",
    "DeviceArray",
    "DeviceFacts",
    "DeviceRef",
    "Executable",
    "ExecutableCache",
    "Function",
    "HostDevice",
    "HostStep",
    "InputRef",
    "Inside",
    "KernelCache",
    "KernelSpec",
    "KernelStep",
    "Lifetime",
    "LoadedCode",
    "LoadedFunction",
    "LoadedObject",
    "LoopStep",
    "Memory",
    "Missing",
    "Network",
    "OutputRef",
    "PendingRun",
    "Plan",
    "PlanSize",
    "Port",
    "Span",
    "Step",
    "StepTime",
    "Team",
    "TensorSpec",
    "TypedRef",
    "amount_of",
    "blocks_of",
    "bytes_of_type",
    "check_array",
    "check_device",
    "check_inputs",
    "check_names",
    "choose_teams",
    "chosen_values",
    "default_cache",
    "default_executable_cache",
    "device_facts",
    "device_of",
    "empty",
    "estimate_seconds",
    "float_bits",
    "host_ref",
    "is_executable",
    "is_kernel_ready",
    "is_native",
    "kernel_ready",
    "kernel_spec",
    "load",
    "load_code",
    "load_function",
    "load_ir",
    "load_object",
    "make_plan",
    "missing_device",
    "named_cache",
    "named_target",
    "plan_from_data",
    "plan_memory",
    "plan_to_data",
    "random_array",
    "read_container",
    "spans_of_step",
    "usable_threads",
    "verify_plan",
    "with_room",
    "without_teams",
    "write_container",
]
