"""The code that compiled programs need at run time.

From machine code upwards: native/ (jit.py: from object code to callable addresses), caches/.
From the user downwards: plan/plan.py (the steps of an executable, as data), plan/planner.py (makes
plans), plan/placement.py (which steps share leased threads), device.py (the protocol of devices),
host.py (the first one), executable.py, frame.py (the memory of one call), native/driver.py (steps
in native code), container.py (the file format).  Running does not need measuring/; import it
separately.
"""

from tensorwright.runtime.buffers import ALIGNMENT, empty, is_kernel_ready, kernel_ready
from tensorwright.runtime.caches import (
    ExecutableCache, KernelCache, default_cache, default_executable_cache, named_cache,
)
from tensorwright.runtime.container import Contents, is_executable, read_container, write_container
from tensorwright.runtime.device import (
    DEVICES, Device, DeviceFacts, Function, Memory, Missing, check_device, device_facts, device_of,
    missing_device, named_target,
)
from tensorwright.runtime.dlpack import DeviceArray
from tensorwright.runtime.executable import Executable, StepTime
from tensorwright.runtime.frame import Bound
from tensorwright.runtime.generation import (
    Beam, generate, generate_batch, generate_beams, stream_text,
)
from tensorwright.runtime.generation_defaults import GenerationDefaults, generation_defaults
from tensorwright.runtime.host import HOST, HostDevice
from tensorwright.runtime.inputs import (
    Port, check_array, check_inputs, check_names, random_array, shape_advice,
)
from tensorwright.runtime.loader import load
from tensorwright.runtime.native.jit import (
    LoadedCode, LoadedFunction, LoadedObject, load_code, load_function, load_ir, load_object,
)
from tensorwright.runtime.native.pool import float_bits, usable_threads
from tensorwright.runtime.native.pool.pending_run import PendingRun
from tensorwright.runtime.plan.call_sizes import chosen_values
from tensorwright.runtime.plan.capacity import Lifetime, plan_memory, with_room
from tensorwright.runtime.plan.placement import choose_teams, estimate_seconds, without_teams
from tensorwright.runtime.plan.plan import (
    ArenaRef, ArgumentSpec, BranchStep, BufferRef, Call, CollectStep, ConstantRef, CopyStep,
    DeviceRef, GrownState, HostStep, InputRef, KernelSpec, KernelStep, LoopStep, OutputRef, Plan,
    Step, Team, TensorSpec, TypedRef, UnrankedSpec, WrittenState, blocks_of, bytes_of_type,
    host_ref, is_native,
)
from tensorwright.runtime.plan.plan_sizes import PlanSize
from tensorwright.runtime.plan.plan_verify import (
    Span, plan_from_data, plan_to_data, read_too_early, spans_of_step, verify_plan,
)
from tensorwright.runtime.plan.planner import (
    CopyTensor, Inside, Network, amount_of, kernel_spec, make_plan,
)
from tensorwright.runtime.sampling import GREEDY, Sampling
from tensorwright.runtime.state_pairs import state_pairs
