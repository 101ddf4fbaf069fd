"""The plan of an executable, as plain data: tensors, kernels, steps in order.

    plan  ::= Plan(name, target, threads, inputs, outputs, constants, kernels, steps, arena_bytes,
                   teams, sizes)
    step  ::= KernelStep | CopyStep | HostStep | BranchStep | LoopStep | CollectStep
    ref   ::= host | DeviceRef(host)
    host  ::= InputRef(i) | OutputRef(i) | ConstantRef(i) | ArenaRef(offset, size)

The steps of a branch or a loop follow it; it has their number, and chooses which of them run and
how often.

A plan refers to object code and constants by position; it holds neither. Steps run in order, and a
step sees everything that earlier steps wrote. A buffer that a kernel writes does not overlap
another argument of the same step. All offsets and all arguments of kernels are multiples of 64
bytes. A kernel with parallel loops leases threads; inside a team, whose threads are leased once, it
uses the team's threads.

The plan of an open network has formulas of named sizes instead of some numbers (`plan_sizes.py`);
`Plan.at` puts numbers in.

A reference names the memory of a buffer: the host's, or a device's, which has a copy of each buffer
that its kernels use.  Kernels for processors use the host's memory, other kernels the device's;
copies move bytes between the two.  Constants are in both from the start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeAlias, TypeVar

from tensorwright import base
from tensorwright.runtime.plan.plan_sizes import PlanSize, numbered

Attributes: TypeAlias = tuple[tuple[str, base.AttributeValue], ...]
Place = TypeVar("Place")
"""The location of an argument: a tensor's name, or a reference after memory is planned."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A named tensor at the border of the program; inputs and outputs are plain row-major.

    room   upper bounds of its extents in a call, which grow with the sizes that steps decide; None
           if they are the shape
    """

    name: str
    dtype: base.DType
    shape: tuple[base.Amount, ...]
    room: tuple[base.Amount, ...] | None = None

    @property
    def has_rank(self) -> bool:
        """Whether the rank is known before a call."""
        return True

    @property
    def type_text(self) -> str:
        """The type for a person: "f32(batch, 4)"."""
        return str(self.type)

    @property
    def type(self) -> base.TensorType:
        """Element type and shape, without the name."""
        return base.TensorType(self.dtype, self.shape)

    @property
    def roomy(self) -> TensorSpec:
        """The tensor with its greatest extents in a call."""
        return self if self.room is None else TensorSpec(self.name, self.dtype, self.room)

    @property
    def extents(self) -> tuple[int, ...]:
        """The shape in numbers.  Raises: UnsupportedError if it has a named size."""
        return self.type.extents

    @property
    def size_bytes(self) -> int:
        """Bytes of the dense tensor.  Raises: as `extents`."""
        return self.type.size_bytes

    def __str__(self) -> str:
        return f"{self.name}: {self.type_text}"


@dataclass(frozen=True, slots=True)
class UnrankedSpec(TensorSpec):
    """A tensor whose rank each call decides; its shape is empty."""

    @property
    def has_rank(self) -> bool:
        """Whether the rank is known before a call."""
        return False

    @property
    def type_text(self) -> str:
        """The type for a person: "f32(...)"."""
        return f"{self.dtype}(...)"


@dataclass(frozen=True, slots=True)
class InputRef:
    """A position in the caller's input `index`."""

    index: int
    offset_bytes: int = 0

    def __str__(self) -> str:
        return f"in{self.index}{_plus(self.offset_bytes)}"


@dataclass(frozen=True, slots=True)
class OutputRef:
    """A position in output `index`; steps may read what earlier steps wrote there."""

    index: int
    offset_bytes: int = 0

    def __str__(self) -> str:
        return f"out{self.index}{_plus(self.offset_bytes)}"


@dataclass(frozen=True, slots=True)
class ConstantRef:
    """A position in constant `index`."""

    index: int
    offset_bytes: int = 0

    def __str__(self) -> str:
        return f"const{self.index}{_plus(self.offset_bytes)}"


@dataclass(frozen=True, slots=True)
class ArenaRef:
    """A piece of the arena, the scratch memory that all intermediate tensors of a call share."""

    offset_bytes: int
    size_bytes: base.Amount

    def __str__(self) -> str:
        first, size_bytes = self.offset_bytes, self.size_bytes
        if isinstance(size_bytes, int):
            return f"arena[{first}:{first + size_bytes}]"
        return f"arena[{first}: {size_bytes} bytes]"


HostRef: TypeAlias = InputRef | OutputRef | ConstantRef | ArenaRef


@dataclass(frozen=True, slots=True)
class DeviceRef:
    """The same bytes of the same buffer in the memory of the device that runs the kernels."""

    copy_of: HostRef

    @property
    def offset_bytes(self) -> int:
        """Its offset in the buffer."""
        return self.copy_of.offset_bytes

    def __str__(self) -> str:
        return f"device {self.copy_of}"


BufferRef: TypeAlias = HostRef | DeviceRef


def host_ref(ref: BufferRef) -> HostRef:
    """The reference, in the host's memory.  Raises: InternalError for one in a device's."""
    if isinstance(ref, DeviceRef):
        raise base.InternalError(
            stage="runtime", where=str(ref), reason="a processor uses the host's memory alone"
        )
    return ref


def bytes_of_type(given: base.TensorType) -> base.Amount:
    """The bytes of a dense tensor, whose extents are numbers or formulas."""
    amounts: list[base.Amount] = [given.dtype.size_bytes]
    for extent in given.shape:
        assert isinstance(extent, int | base.Formula), "a plan has no other sizes"
        amounts.append(extent)
    return base.product_of_amounts(tuple(amounts))


@dataclass(frozen=True, slots=True)
class TypedRef:
    """A position in the host's memory, and the dense tensor that lies there."""

    ref: HostRef
    type: base.TensorType


@dataclass(frozen=True, slots=True)
class ArgumentSpec:
    """The use of one argument by a kernel, and the bytes that it may touch."""

    role: base.Role
    size_bytes: base.Amount


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """A compiled kernel; on `Threads`, `void symbol(ptr arguments, ptr workspace, i32 threads)`.

    `launches` are its calls, from its signature.  It needs
    workspace_bytes + threads * local_workspace_bytes of scratch memory.  The `sizes` follow the
    addresses of its arguments.
    """

    symbol: str
    arguments: tuple[ArgumentSpec, ...]
    workspace_bytes: base.Amount = 0
    local_workspace_bytes: base.Amount = 0
    launches: tuple[base.Launch, ...] = base.ON_THREADS
    sizes: tuple[base.Amount, ...] = ()

    @property
    def symbols(self) -> tuple[str, ...]:
        """The functions of its launches, in order."""
        rest = range(1, len(self.launches))
        return (self.symbol, *(f"{self.symbol}_{number}" for number in rest))

    def scratch_bytes(self, threads: int) -> int:
        """Bytes of scratch memory for a number of threads, if the kernel has no named sizes."""
        return base.number_in(self.workspace_bytes) + threads * base.number_in(
            self.local_workspace_bytes
        )


@dataclass(frozen=True, slots=True)
class KernelStep(Generic[Place]):
    """Call `kernels[kernel]`. flops and bytes_moved are the least work of the step.

    most_threads   the most threads on which it runs; 0 for all threads of the executable
    """

    kernel: int
    arguments: tuple[Place, ...]
    label: str
    flops: base.Amount = 0
    bytes_moved: base.Amount = 0
    most_threads: int = 0


@dataclass(frozen=True, slots=True)
class CopyStep:
    """Copy bytes between memories, or to an output that is an input, constant or other output."""

    source: BufferRef
    destination: BufferRef
    size_bytes: base.Amount
    label: str = "copy"


@dataclass(frozen=True, slots=True)
class HostStep(Generic[Place]):
    """Run an operator's NumPy implementation; attributes are complete and sorted.

    counted   the named size that its values decide, an extent of a result; "" if they decide none
    """

    operator: str
    attributes: Attributes
    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...]
    label: str
    counted: str = ""


@dataclass(frozen=True, slots=True)
class BranchStep(Generic[Place]):
    """The next `then` steps run if the condition holds, else the `otherwise` steps after those."""

    condition: Place
    then: int
    otherwise: int
    label: str = "branch"


@dataclass(frozen=True, slots=True)
class LoopStep(Generic[Place]):
    """The next `body` steps run while the condition holds, `count` times at most.

    iteration   gets the number of the iteration
    counted     the named size that is the number of iterations; or the number of rows for which
                there is room; "" if it decides no size
    """

    count: Place
    condition: Place
    iteration: Place
    body: int
    label: str = "loop"
    counted: str | int = ""


@dataclass(frozen=True, slots=True)
class CollectStep(Generic[Place]):
    """Copy the source to the row of the destination whose number is the iteration."""

    source: Place
    iteration: Place
    destination: Place
    label: str = "collect"


Call: TypeAlias = (
    KernelStep[str] | HostStep[str] | BranchStep[str] | LoopStep[str] | CollectStep[str]
)
Choice: TypeAlias = BranchStep[TypedRef] | LoopStep[TypedRef] | CollectStep[TypedRef]
Step: TypeAlias = KernelStep[BufferRef] | CopyStep | HostStep[TypedRef] | Choice


def is_native(step: Step) -> bool:
    """Whether a step only computes or copies, in native code."""
    return isinstance(step, KernelStep | CopyStep | CollectStep)


def inner_counts(step: Step | Call) -> tuple[int, ...]:
    """The numbers of steps in the blocks that follow a branch or a loop; () for other steps."""
    match step:
        case BranchStep(_, then, otherwise):
            return then, otherwise
        case LoopStep(body=body):
            return (body,)
        case _:
            return ()


def blocks_of(steps: Sequence[Step], begin: int = 0, end: int | None = None) -> Iterator[Block]:
    """The steps begin..end outside of inner blocks, each with the borders of its blocks."""
    position, end = begin, len(steps) if end is None else end
    while position < end:
        first = position + 1
        borders: list[tuple[int, int]] = []
        for count in inner_counts(steps[position]):
            borders.append((first, first + count))
            first += count
        yield position, tuple(borders)
        position = first


Block: TypeAlias = tuple[int, tuple[tuple[int, int], ...]]
"""A step, and the positions at which its blocks begin and end."""


def native_steps(steps: Sequence[Step]) -> tuple[bool, ...]:
    """For each step, whether the driver does it in native code, with all steps of its blocks.

    A loop that decides a size is not native, because Python computes with the size.
    """
    native = [not isinstance(step, HostStep) for step in steps]
    for position in reversed(range(len(steps))):
        step = steps[position]
        _, inner = next(blocks_of(steps, position))
        for first, last in inner:
            native[position] &= all(native[first:last])
        if isinstance(step, LoopStep) and step.counted and isinstance(step.counted, str):
            native[position] = False
    return tuple(native)


@dataclass(frozen=True, slots=True)
class ArenaPiece:
    """A tensor in the arena, which holds data from its first to its last step.

    name, shape   of the tensor; "" and () in files of earlier versions
    """

    offset_bytes: int
    size_bytes: base.Amount
    first_step: int
    last_step: int
    name: str = ""
    shape: tuple[base.Amount, ...] = ()


@dataclass(frozen=True, slots=True)
class GrownState:
    """An input that a call extends in place: it has all rows, the output has the new ones.

    Both have the growing axis first.  The caller gives the last rows of the input's memory as the
    output.

    axis   the growing one, counted from 0 in the network
    """

    input: str
    output: str
    axis: int

    def order(self, rank: int) -> tuple[int, ...]:
        """The dimensions of the network's tensor in the order of memory."""
        return (self.axis, *(at for at in range(rank) if at != self.axis))


@dataclass(frozen=True, slots=True)
class WrittenState:
    """An input into whose memory a call writes some rows; the output is the same memory.

    axis   the dimension of the network's tensor along which the rows lie
    dims   its dimensions in the order of memory
    rows   how many a call writes
    """

    input: str
    output: str
    axis: int
    dims: tuple[int, ...]
    rows: base.Amount

    def order(self, rank: int) -> tuple[int, ...]:
        """The dimensions of the network's tensor in the order of memory."""
        return self.dims[:rank]


@dataclass(frozen=True, slots=True)
class Team:
    """Steps begin..end, none of them on the host, share threads that are leased once."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole program; `threads` is the number for which its schedules were chosen.

    teams   in order; each kernel outside of them leases its threads
    sizes   the named sizes in its formulas, sorted by name; an arena of `arena_bytes` has room for
            their capacities
    pieces  of the arena, if a size may grow: with them the arena is laid out again
    states  that the call changes in place: a step that reads one follows those that write its rows
    """

    name: str
    target: base.Target
    threads: int
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    constants: tuple[TensorSpec, ...]
    kernels: tuple[KernelSpec, ...]
    steps: tuple[Step, ...]
    arena_bytes: int = 0
    teams: tuple[Team, ...] = ()
    sizes: tuple[PlanSize, ...] = ()
    pieces: tuple[ArenaPiece, ...] = ()
    states: tuple[GrownState | WrittenState, ...] = ()

    @property
    def capacity(self) -> dict[str, int]:
        """The values of the named sizes for which memory is laid out."""
        return {size.name: size.capacity for size in self.sizes}

    @property
    def at_capacity(self) -> Plan:
        """The plan with these values."""
        return self.at(self.capacity)

    def at(self, values: Mapping[str, int]) -> Plan:
        """The plan with numbers for named sizes, its arena as it is laid out."""
        if not self.sizes:
            return self
        left = tuple(size for size in self.sizes if size.name not in values)
        return numbered(replace(self, sizes=left, pieces=()), values)

    @property
    def counted(self) -> tuple[str, ...]:
        """The named sizes that steps decide, in the order of the steps."""
        deciding = (step for step in self.steps if isinstance(step, LoopStep | HostStep))
        counted = [step.counted for step in deciding]
        return tuple(dict.fromkeys(each for each in counted if each and isinstance(each, str)))

    def scratch_bytes(self, threads: int) -> int:
        """The scratch memory of the kernel that needs most; kernels use it in turn."""
        kernels = numbered(self.kernels, self.capacity)
        return max((kernel.scratch_bytes(threads) for kernel in kernels), default=0)

    @property
    def host_operators(self) -> tuple[str, ...]:
        """Names of the operators that run on the host, in order."""
        return tuple(step.operator for step in self.steps if isinstance(step, HostStep))

    def __str__(self) -> str:
        page = base.Printer()
        page.line(f"{self.name}   target={self.target} arena={self.arena_bytes} bytes")
        with page.indent():
            page.lines(f"size {size}" for size in self.sizes)
            page.lines(f"in {spec}" for spec in self.inputs)
            page.lines(f"out {spec}" for spec in self.outputs)
            page.table([_row(self, step) for step in self.steps])
            page.lines(f"team: steps {team.begin}..{team.end}" for team in self.teams)
        return str(page)


def _plus(offset_bytes: int) -> str:
    return f"+{offset_bytes}" if offset_bytes else ""


def _row(plan: Plan, step: Step) -> tuple[str, ...]:
    match step:
        case KernelStep(kernel, arguments, label):
            call = f"{plan.kernels[kernel].symbol}({', '.join(map(str, arguments))})"
            if step.most_threads:
                call += f" @threads<={step.most_threads}"
            launches = plan.kernels[kernel].launches
            call += "".join(f" @{each}" for each in launches if isinstance(each, base.Grid))
        case CopyStep(source, destination, size_bytes, label):
            call = f"copy({destination}, {source}, {size_bytes})"
        case HostStep(operator, _, inputs, outputs, label):
            written = ", ".join(str(typed.ref) for typed in outputs)
            call = f"host {written} = {operator}({', '.join(str(t.ref) for t in inputs)})"
        case BranchStep(condition, then, otherwise, label):
            call = f"if {condition.ref}: {then} steps, else: {otherwise} steps"
        case LoopStep(count, condition, iteration, body, label):
            call = f"for {iteration.ref} in 0..{count.ref} while {condition.ref}: {body} steps"
        case CollectStep(source, iteration, destination, label):
            call = f"{destination.ref}[{iteration.ref}] = {source.ref}"
    return (f"{label}:", call)
