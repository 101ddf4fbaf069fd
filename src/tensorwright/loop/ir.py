"""The loop-nest IR: what a schedule lowers to and what the code generators read.

Grammar
    program ::= LoopProgram(name, parameters, body)
    s ::= Block((s, ...)) | For(var, extent, kind, s) | If(c, s) | Allocate(buffer, s)
        | Store(buffer, (e, ...), v) | Prefetch(buffer, (e, ...)) | Call(intrinsic, (window, ...))
        | Barrier() | LaneFold(buffer, (e, ...), fn, lanes) | LaunchBounds(groups)
        | StartCopy(s) | CommitCopies() | WaitCopies(batches)
    v, e, c   values, index expressions and conditions of `tensorwright.expr`, over buffers

Semantics.
- Statements of a block run in order.  A loop runs var = 0 .. extent-1; an extent of zero runs
  nothing.
- SERIAL and UNROLLED loops run in order.  PARALLEL iterations may run at the same time in any
  order, VECTOR iterations run in lock step, BLOCK/THREAD iterations are GPU indices: a
  program is valid only if no iteration of these reads what another one writes, and two of them
  write one element only with one value, so that running them in order gives the same result
  (the interpreter does).  The lanes of a VECTOR loop may fold values into one float (+=, *=, max=,
  min=) that nothing else in the loop touches; the order of the fold is free.
- Loops over THREAD indices that are nested in each other are one group of threads; each iteration
  of the BLOCK loops around has a group of its own. The threads of a group advance on their own. At
  a `Barrier` each waits until all of its group have come to it: what they did before is seen by all
  of them afterwards. So between two barriers no thread may read what another one writes. Either all
  threads of a group reach a barrier or none does, as often and in the same order: no condition
  around it may depend on the thread.
- `StartCopy` begins a store that ends later.  `CommitCopies` makes one batch of all that the thread
  has begun since the last one; `WaitCopies` waits until at most `batches` of the thread, the last
  ones, have not ended.  Until then, no thread may access the element. Copies of other threads are
  seen after a barrier behind the wait.
- `LaneFold` folds an element of a local buffer over neighbouring threads, `lanes` by `lanes` of
  those along thread.x: each has the result then.  All of them come to it together, as to a barrier;
  where none of such threads has stored the element, nothing happens.  The order of the fold is
  free.
- `LaunchBounds` does nothing but ask that `groups` groups fit on a multiprocessor at once.
- Extents and indices are index expressions over enclosing loop variables and, before they are
  bound, decisions. A program whose decisions are bound has extents that are ints, but for serial
  loops.
- Buffers do not alias.  An `Allocate`d buffer lives inside its statement, undefined at first; one
  of scope LOCAL is private to the iteration (the thread) that allocates it, SHARED is one piece of
  memory for each group of threads, whose loops are inside of its statement, GLOBAL is one for each
  call.
- Every index of a load or store that is executed lies inside the buffer's shape; the branch of a
  `Select` or `If` that is not taken is not executed.  Buffers are dense and row-major.
- A store converts nothing: the value has the buffer's dtype.  Float arithmetic is not reassociated;
  a multiplication feeding an addition may be contracted into one rounding (FMA).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tensorwright import expr
from tensorwright.base import DType, InternalError, Printer, Role
from tensorwright.schedule import PLAIN, ForKind, MemoryLayout, Scope


@dataclass(frozen=True, slots=True)
class Buffer:
    """A dense row-major piece of memory; names are unique in a program.

    layout   of its elements in memory, for back ends; it does not change results
    """

    name: str
    shape: tuple[expr.Index, ...]
    dtype: DType
    scope: Scope = Scope.GLOBAL
    layout: MemoryLayout = PLAIN

    @property
    def extents(self) -> tuple[int, ...]:
        """The shape in numbers.

        Raises:  InternalError if a decision in it is not bound.
        """
        extents = tuple(extent for extent in self.shape if isinstance(extent, int))
        if len(extents) != len(self.shape):
            reason = "its extents are not bound"
            raise InternalError(stage="loop", where=f"buffer {self}", reason=reason)
        return extents

    def __str__(self) -> str:
        layout = "" if self.layout == PLAIN else f" {self.layout}"
        return f"{self.name}: {self.dtype} ({', '.join(map(str, self.shape))}){layout}"


@dataclass(frozen=True, slots=True)
class Packing:
    """How a packed constant is filled: packed[axes] = source[indices] where `valid`, else 0.

    source_shape  the shape of the source
    derivation    the source as a tensor over one placeholder, the constant as the caller knows it;
                  None if that is the source itself
    """

    axes: tuple[tuple[expr.Var, expr.Index], ...]
    indices: tuple[expr.Index, ...]
    valid: expr.Condition
    source_shape: tuple[expr.Index, ...]
    derivation: expr.Compute | None = None


@dataclass(frozen=True, slots=True)
class Parameter:
    """A buffer that the caller passes, in order.

    `source` is the caller's name for it where the buffer has another one: a packed constant.
    """

    buffer: Buffer
    role: Role
    packing: Packing | None = None
    source: str = ""

    @property
    def name(self) -> str:
        """The name that the caller uses."""
        return self.source or self.buffer.name


@dataclass(frozen=True, slots=True)
class Block:
    """Statements in order; build with `block`."""

    statements: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class For:
    """A loop over 0..extent."""

    var: expr.Var
    extent: expr.Index
    kind: ForKind
    body: Stmt


@dataclass(frozen=True, slots=True)
class If:
    """Run the body where the condition holds."""

    condition: expr.Condition
    then: Stmt


@dataclass(frozen=True, slots=True)
class Allocate:
    """Give the body a buffer."""

    buffer: Buffer
    body: Stmt


@dataclass(frozen=True, slots=True)
class Store:
    """buffer[indices] = value."""

    buffer: Buffer
    indices: tuple[expr.Index, ...]
    value: expr.Value


@dataclass(frozen=True, slots=True)
class Prefetch:
    """Ask for a cache line that will be read soon; the place may lie outside the buffer.

    level   of the cache that it is wanted in
    """

    buffer: Buffer
    indices: tuple[expr.Index, ...]
    level: int = 1


@dataclass(frozen=True, slots=True)
class Window:
    """A box inside a buffer, by its first element: what an intrinsic reads or writes."""

    buffer: Buffer
    indices: tuple[expr.Index, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A hardware intrinsic on windows; `meaning` is the statement that it replaces."""

    intrinsic: str
    windows: tuple[Window, ...]
    meaning: Stmt


class GroupStatement:
    """A statement that only threads of a group run; processors have no code for it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Barrier(GroupStatement):
    """Wait until every thread of the group is here."""


@dataclass(frozen=True, slots=True)
class LaneFold(GroupStatement):
    """Fold an element over the threads of a warp, which exchange it without memory."""

    buffer: Buffer
    indices: tuple[expr.Index, ...]
    fn: expr.Fn
    lanes: int


@dataclass(frozen=True, slots=True)
class StartCopy(GroupStatement):
    """Begin a store to a shared buffer; it has ended after a `WaitCopies`."""

    store: Store


@dataclass(frozen=True, slots=True)
class CommitCopies(GroupStatement):
    """Make a batch of the copies that the thread has begun since the last batch."""


@dataclass(frozen=True, slots=True)
class WaitCopies(GroupStatement):
    """Wait until all batches of the thread, except the last `batches`, have ended."""

    batches: int


@dataclass(frozen=True, slots=True)
class LaunchBounds(GroupStatement):
    """Let that many groups run on a multiprocessor at once: a thread gets fewer registers."""

    groups: int


Stmt: TypeAlias = (
    Block
    | For
    | If
    | Allocate
    | Store
    | Prefetch
    | Call
    | Barrier
    | LaneFold
    | StartCopy
    | CommitCopies
    | WaitCopies
    | LaunchBounds
)


@dataclass(frozen=True, slots=True)
class LoopProgram:
    """A whole program: parameters in calling order and a body."""

    name: str
    parameters: tuple[Parameter, ...]
    body: Stmt

    def __str__(self) -> str:
        page = Printer()
        print_program(self, page)
        return str(page)


def block(*statements: Stmt) -> Stmt:
    """A block of statements, flattened; a single statement is returned as it is."""
    flat: list[Stmt] = []
    for statement in statements:
        flat += statement.statements if isinstance(statement, Block) else (statement,)
    return flat[0] if len(flat) == 1 else Block(tuple(flat))


def guarded(condition: expr.Condition, statement: Stmt) -> Stmt:
    """A statement under a condition; the statement itself, or nothing, where that is decided."""
    if isinstance(condition, bool):
        return statement if condition else block()
    return If(condition, statement)


def print_program(
    program: LoopProgram, page: Printer, marked: Stmt | None = None, note: str = ""
) -> None:
    """Print a program as pseudo-code, with a note beside one statement (the object itself)."""
    rows = ", ".join(f"{p.role.value} {p.buffer}" for p in program.parameters)
    with page.block(f"{program.name}({rows}):"):
        print_statement(program.body, page, marked, note)


def print_statement(
    statement: Stmt, page: Printer, marked: Stmt | None = None, note: str = ""
) -> None:
    """Print a statement as pseudo-code.

    Perfectly nested loops of one kind share a line; C[i] = C[i] + x prints as C[i] += x.
    """
    beside = note if statement is marked else ""
    match statement:
        case Block(statements):
            for part in statements:
                print_statement(part, page, marked, note)
            if not statements:
                page.line("pass", beside)
        case For():
            group, body, beside = _nest(statement, marked, note)
            names = ", ".join(str(loop.var) for loop in group)
            extents = ", ".join(f"0..{loop.extent}" for loop in group)
            kind = f"  {statement.kind.note}".rstrip()
            with page.block(f"for {names} in {extents}{kind}:", beside):
                print_statement(body, page, marked, note)
        case If(condition, then):
            with page.block(f"if {condition}:", beside):
                print_statement(then, page, marked, note)
        case Allocate(buffer, body):
            page.line(f"{buffer.scope.value} {buffer}", beside)
            print_statement(body, page, marked, note)
        case Store(buffer, indices, value):
            element = _access(buffer, indices)
            page.line(f"{element} {_assignment(buffer, indices, value)}", beside)
        case Prefetch(buffer, indices):
            page.line(f"prefetch {_access(buffer, indices)}", beside)
        case GroupStatement():
            page.line(_group_statement(statement), beside)
        case Call(intrinsic, windows, _):
            args = ", ".join(f"&{_access(w.buffer, w.indices)}" for w in windows)
            page.line(f"{intrinsic}({args})", beside)


def _group_statement(
    statement: Barrier | LaneFold | StartCopy | CommitCopies | WaitCopies | LaunchBounds,
) -> str:
    match statement:
        case Barrier():
            return "barrier"
        case LaneFold(buffer, indices, fn, lanes):
            return f"{_access(buffer, indices)} = {fn.text} over {lanes} lanes"
        case StartCopy(Store(buffer, indices, value)):
            return f"start {_access(buffer, indices)} = {value}"
        case CommitCopies():
            return "commit copies"
        case WaitCopies(batches):
            return f"wait for all copies but {batches} batches"
        case LaunchBounds(groups):
            return f"launch bounds: {groups} groups"


def _nest(loop: For, marked: Stmt | None, note: str) -> tuple[list[For], Stmt, str]:
    """The loops that share a line with this one, what is inside them, and the note of the line."""
    group = [loop]
    body = loop.body
    while isinstance(body, For) and body.kind is loop.kind and body is not marked:
        group.append(body)
        body = body.body
    return group, body, note if any(part is marked for part in group) else ""


_UPDATES = {
    expr.Fn.ADD: "+=",
    expr.Fn.SUB: "-=",
    expr.Fn.MUL: "*=",
    expr.Fn.MAX: "max=",
    expr.Fn.MIN: "min=",
}


def _assignment(buffer: Buffer, indices: tuple[expr.Index, ...], value: expr.Value) -> str:
    """The right side: "= x", or "+= x" if the value is the element plus x."""
    if isinstance(value, expr.Apply) and value.fn in _UPDATES and len(value.args) == 2:
        old, new = value.args
        if old == expr.Load(buffer, indices):
            return f"{_UPDATES[value.fn]} {new}"
    return f"= {value}"


def _access(buffer: Buffer, indices: tuple[expr.Index, ...]) -> str:
    return f"{buffer.name}[{', '.join(map(str, indices))}]"
