"""Run a loop nest by the meaning of the IR, slowly and with every check.

Passes and code generators are tested against it.  The statements become nested Python functions of
one environment (a list with a slot per loop variable), so that 100,000 innermost iterations take
about a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial, reduce
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright import expr
from tensorwright.base import HERE, InternalError, Printer, Role
from tensorwright.loop import ir
from tensorwright.loop.packing import pack
from tensorwright.loop.scalars import convert, folded_operand, function_of, quiet
from tensorwright.loop.traversal import buffers_of_index, has_barrier, walk
from tensorwright.schedule import BLOCKS, THREADS, ForKind, Scope
from tensorwright_lab.loop_interpreter import groups
from tensorwright_lab.loop_interpreter.closures import (
    Environment,
    IndexFunction,
    bind_decisions,
    compile_condition,
    compile_index,
)
from tensorwright_lab.loop_interpreter.memory import Cell, Copy, CopyQueue, Iterations, Race, Trace

Action: TypeAlias = Callable[[Environment], None]
Compute: TypeAlias = Callable[[Environment], Any]

_ORDERED = (ForKind.SERIAL, ForKind.UNROLLED)


def interpret(
    program: ir.LoopProgram,
    arrays: Mapping[str, NDArray[Any]],
    decisions: Mapping[expr.Decision, int] | None = None,
    trace: Trace | None = None,
    *,
    check_races: bool = True,
) -> dict[str, NDArray[Any]]:
    """Run a program on inputs and constants, in the shape that the caller knows; give the outputs.

    A packed constant is given in its source's shape, under its source's name (`Parameter.name`).
    `trace` is called for every load and store of an element, also for those in index expressions.
    Raises:  InternalError, with the program and the place marked, for an index outside its buffer,
             a load of an element that was never stored, a race between iterations of a concurrent
             loop or threads of a group, threads that do not come to a barrier together, an output
             that is not wholly stored, a missing array or one of another shape or dtype, a decision
             without a value.
    """
    if decisions:
        program = bind_decisions(program, decisions)
    return _Machine(program, trace, check_races).run(arrays)


class _Machine:
    """Compiles the statements of one program; mutable, lives for one interpretation."""

    def __init__(self, program: ir.LoopProgram, trace: Trace | None, check_races: bool) -> None:
        self._program = program
        self._trace = trace
        loops = [part for part in walk(program.body) if isinstance(part, ir.For)]
        self._check = check_races and any(part.kind not in _ORDERED for part in loops)
        self._has_groups = any(part.kind in THREADS for part in loops)
        self._places = {var: n for n, var in enumerate(dict.fromkeys(part.var for part in loops))}
        self._cells: dict[str, Cell] = {}
        self._iterations = Iterations()
        self._queues: dict[tuple[int, ...], CopyQueue] = {}
        bound = {part.var for part in loops if part.kind in BLOCKS | THREADS}
        self._thread_places = [self._places[var] for var in bound]
        self._lanes: frozenset[expr.Var] = frozenset()  # the variables of the vector loops around

    def run(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        for parameter in self._program.parameters:
            name = parameter.buffer.name
            self._cells[name] = Cell(parameter.buffer, self._contents(parameter, arrays))
        outputs = [p.buffer.name for p in self._program.parameters if p.role is Role.OUTPUT]
        with quiet():
            action = self._statement(self._program.body, {})
            action([0] * len(self._places))
        for name in outputs:
            missing = self._cells[name].defined.find(0)
            if missing >= 0:
                indices = np.unravel_index(missing, self._cells[name].shape)
                at = ", ".join(str(int(n)) for n in indices)
                self._fail(None, None, f"the output {name}[{at}] is never stored")
        return {name: self._cells[name].array() for name in outputs}

    def _contents(
        self, parameter: ir.Parameter, arrays: Mapping[str, NDArray[Any]]
    ) -> NDArray[Any] | None:
        if parameter.role is Role.OUTPUT:
            return None
        buffer = parameter.buffer
        if parameter.name not in arrays:
            self._fail(None, None, f"no array is given for {buffer}")
        array = arrays[parameter.name]
        if parameter.packing is not None:
            array = pack(array, parameter.packing)
        if array.shape != buffer.shape or array.dtype != buffer.dtype.numpy:
            self._fail(None, None, f"{buffer} gets an array {array.dtype} {array.shape}")
        return array

    def _fail(self, at: ir.Stmt | None, env: Environment | None, reason: str) -> NoReturn:
        page = Printer()
        ir.print_program(self._program, page, at, HERE)
        where = self._program.name
        if env is not None:
            values = ", ".join(f"{v} = {env[p]}" for v, p in self._places.items())
            where += f" with {values}" if values else ""
        raise InternalError(stage="loop", where=where, reason=f"{reason}\n{page}")

    def _stores_to(self, buffer: ir.Buffer) -> str:
        """Where a buffer of a group is stored: by other threads, or too late."""
        if buffer.scope is Scope.GLOBAL or not self._has_groups:
            return ""
        stores = [
            part
            for part in walk(self._program.body)
            if isinstance(part, ir.Store) and part.buffer == buffer
        ]
        lines = (_line_of(store) for store in stores)
        return "".join(f"; a thread that stores it does so in: {line}" for line in lines)

    # statements

    def _statement(self, statement: ir.Stmt, bounds: expr.Bounds) -> Action:
        match statement:
            case ir.Block(statements):
                return _sequence(tuple(self._statement(part, bounds) for part in statements))
            case ir.For():
                return self._loop(statement, bounds)
            case ir.If(condition, then):
                test = compile_condition(condition, self._places, self._element(statement, bounds))
                body = self._statement(then, bounds)
                return lambda env: body(env) if test(env) else None
            case ir.Allocate(buffer, inner):
                return self._allocate(buffer, inner, bounds)
            case ir.Store():
                return self._store(statement, bounds)
            case ir.Prefetch() | ir.LaunchBounds():
                return lambda env: None
            case ir.StartCopy(store):
                return self._start(statement, store, bounds)
            case ir.CommitCopies():
                return lambda env: self._queue(env).commit()
            case ir.WaitCopies(batches):
                return lambda env: self._queue(env).wait(batches)
            case ir.Barrier() | ir.LaneFold():
                return self._fail(statement, None, "a barrier outside of a group of threads")
            case ir.Call(_, _, meaning):
                return self._statement(meaning, bounds)

    def _loop(self, loop: ir.For, bounds: expr.Bounds) -> Action:
        if loop.kind in THREADS and has_barrier(loop):
            return groups.to_the_end(self._thread(loop, bounds))
        extent = compile_index(loop.extent, self._places, self._element(loop, bounds))
        kept = self._lanes
        if loop.kind is ForKind.VECTOR:
            self._lanes |= {loop.var}
        body = self._statement(loop.body, {**bounds, loop.var: expr.Range.of_extent(loop.extent)})
        self._lanes = kept
        slot = self._places[loop.var]
        iterations = self._iterations
        is_vector = loop.kind is ForKind.VECTOR

        def ordered(env: Environment) -> None:
            for i in range(extent(env)):
                env[slot] = i
                body(env)

        def concurrent(env: Environment) -> None:
            outer, execution = iterations.now, iterations.enter()
            around = iterations.around
            for i in range(extent(env)):
                env[slot] = i
                iterations.now = (*outer, (execution, i))
                iterations.around = outer if is_vector else iterations.now
                body(env)
            iterations.now, iterations.around = outer, around

        return concurrent if self._check and loop.kind not in _ORDERED else ordered

    # groups of threads that wait for each other

    def _thread(self, statement: ir.Stmt, bounds: expr.Bounds) -> groups.Thread:
        """A statement as the parts that one thread does; each part ends at a barrier, which it
        yields.

        Theorem: the parts of all threads between two barriers run one after the other, as the
        iterations of a concurrent loop of their own do; so the race check stays as it is.
        """
        if not has_barrier(statement):
            return groups.in_one_part(self._statement(statement, bounds))
        match statement:
            case ir.Barrier():
                return lambda env: iter((groups.Stop(statement),))
            case ir.LaneFold():
                return self._lane_fold(statement, bounds)
            case ir.Block(statements):
                return groups.one_after_another(
                    tuple(self._thread(part, bounds) for part in statements)
                )
            case ir.If(condition, then):
                test = compile_condition(condition, self._places, self._element(statement, bounds))
                body = self._thread(then, bounds)
                return lambda env: body(env) if test(env) else iter(())
            case ir.Allocate(buffer, inner):
                cell = self._cells[buffer.name] = Cell(buffer)
                return groups.private(cell, self._thread(inner, bounds))
            case ir.For(var, extent, kind, body) if kind in THREADS or kind in _ORDERED:
                count = compile_index(extent, self._places, self._element(statement, bounds))
                inside = self._thread(body, {**bounds, var: expr.Range.of_extent(extent)})
                slot = self._places[var]
                if kind in _ORDERED:
                    return groups.repeated(count, slot, inside)
                fail = partial(self._fail, reason="not all threads come to this barrier")
                fold = self._fold if kind is ForKind.THREAD_X else None
                return groups.group(count, slot, inside, self._iterations, fail, fold)
            case _:
                return self._fail(statement, None, "a barrier where threads cannot wait")

    def _lane_fold(self, fold: ir.LaneFold, bounds: expr.Bounds) -> groups.Thread:
        cell = self._cells[fold.buffer.name]
        offset = self._offset(fold, cell, fold.indices, bounds)

        def run(env: Environment) -> Iterator[groups.Stop]:
            element = offset(env)
            stop = groups.Stop(fold, cell.elements[element] if cell.defined[element] else None)
            yield stop
            if stop.result is not None:
                cell.elements[element] = stop.result

        return run

    def _fold(self, stops: list[groups.Stop]) -> None:
        """Fold what neighbouring threads have, and give each of them the result."""
        at = stops[0].at
        assert isinstance(at, ir.LaneFold), "a group folds where its threads have come to a fold"
        function = function_of(at.fn, at.buffer.dtype)
        for first in range(0, len(stops), at.lanes):
            lanes = stops[first : first + at.lanes]
            given = [lane.own for lane in lanes if lane.own is not None]
            if not given:
                continue
            if len(given) < at.lanes:
                self._fail(at, None, f"only {len(given)} of {at.lanes} lanes have a number to fold")
            result = reduce(function, given)
            for lane in lanes:
                lane.result = result

    def _allocate(self, buffer: ir.Buffer, inner: ir.Stmt, bounds: expr.Bounds) -> Action:
        cell = self._cells[buffer.name] = Cell(buffer)
        body = self._statement(inner, bounds)

        def allocate(env: Environment) -> None:
            cell.start()
            body(env)

        return allocate

    def _store(self, store: ir.Store, bounds: expr.Bounds) -> Action:
        cell = self._cells[store.buffer.name]
        offset = self._offset(store, cell, store.indices, bounds)
        value = self._value(store, store.value, bounds)
        elements, defined = cell.elements, cell.defined
        note = self._note(store, cell, "store")

        def plain(env: Environment) -> None:
            element = offset(env)
            elements[element] = value(env)
            defined[element] = 1

        def noted(env: Environment) -> None:
            result = value(env)
            element = offset(env)
            note(env, element, result)
            elements[element] = result
            defined[element] = 1

        def folded(env: Environment) -> None:  # as the lanes' fold does: once, outside the lanes
            now = iterations.now
            iterations.now = iterations.around
            noted(env)
            iterations.now = now

        iterations = self._iterations
        if self._check and folded_operand(store) and self._lanes - expr.free_vars(*store.indices):
            return folded
        return noted if self._check or self._trace else plain

    def _start(self, start: ir.StartCopy, store: ir.Store, bounds: expr.Bounds) -> Action:
        """A copy that is in flight until the thread has waited for it."""
        cell = self._cells[store.buffer.name]
        offset = self._offset(start, cell, store.indices, bounds)
        value = self._value(start, store.value, bounds)

        def begin(env: Environment) -> None:
            element = offset(env)
            other = cell.in_flight.get(element)
            if other is not None:
                self._fail(start, env, _early(cell, element, "copied to", other))
            cell.in_flight[element] = start
            self._queue(env).begin(Copy(cell, element, value(env), start, self._ended(env)))

        return begin

    def _ended(self, env: Environment) -> Callable[[Copy], None]:
        """The callback that notes the store of a copy that has ended."""

        def note(copy: Copy) -> None:
            self._note(copy.at, copy.cell, "store")(env, copy.element, copy.value)

        return note

    def _queue(self, env: Environment) -> CopyQueue:
        """The copies of the thread that runs in an environment."""
        return self._queues.setdefault(tuple(env[p] for p in self._thread_places), CopyQueue())

    def _note(self, at: ir.Stmt, cell: Cell, what: str) -> Callable[[Environment, int, Any], None]:
        """Tell the trace and the race check about one access and the value it moves."""
        trace, iterations, races = self._trace, self._iterations, self._check
        is_store = what == "store"

        def note(env: Environment, element: int, moved: Any) -> None:
            if trace is not None:
                trace(what, cell.buffer, element)
            if races:
                try:
                    if is_store:
                        cell.check_store(element, iterations.now, moved, at)
                    else:
                        cell.check_load(element, iterations.now, at)
                except Race as race:
                    reason = f"race: {_element(cell, element)} is {race}"
                    self._fail(at, env, reason + _other_place(race.other, at))

        return note

    # values

    def _value(self, at: ir.Stmt, value: expr.Value, bounds: expr.Bounds) -> Compute:
        match value:
            case expr.Const(number, dtype):
                scalar = dtype.numpy.type(number)
                return lambda env: scalar
            case expr.Load(source, indices):
                return self._load(at, source, indices, bounds)
            case expr.FromIndex(index, dtype):
                number_of = compile_index(index, self._places, self._element(at, bounds))
                kind = dtype.numpy
                return lambda env: np.int64(number_of(env)).astype(kind)
            case expr.Cast(operand, dtype):
                inner, source_dtype = self._value(at, operand, bounds), operand.dtype
                return lambda env: convert(inner(env), source_dtype, dtype)
            case expr.Select():
                return self._select(at, value, bounds)
            case expr.Apply(fn, args):
                function = function_of(fn, args[0].dtype)
                parts = tuple(self._value(at, arg, bounds) for arg in args)
                return _applied(function, parts)

    def _select(self, at: ir.Stmt, value: expr.Select, bounds: expr.Bounds) -> Compute:
        then = self._value(at, value.then, bounds)
        otherwise = self._value(at, value.otherwise, bounds)
        if isinstance(value.condition, expr.ValueExpr):  # both branches are computed
            chosen = self._value(at, value.condition, bounds)

            def both(env: Environment) -> Any:
                first, second = then(env), otherwise(env)
                return first if chosen(env) else second

            return both
        test = compile_condition(
            value.condition,
            self._places,
            self._element(at, bounds),
        )
        return lambda env: then(env) if test(env) else otherwise(env)

    def _load(
        self, at: ir.Stmt, source: ir.Buffer, indices: tuple[expr.Index, ...], bounds: expr.Bounds
    ) -> Compute:
        cell = self._cells[source.name]
        offset = self._offset(at, cell, indices, bounds)
        elements, defined, in_flight = cell.elements, cell.defined, cell.in_flight
        note = self._note(at, cell, "load")
        noted = self._check or self._trace is not None

        def load(env: Environment) -> Any:
            element = offset(env)
            if in_flight and element in in_flight:
                self._fail(at, env, _early(cell, element, "read", in_flight[element]))
            if not defined[element]:
                reason = f"{_element(cell, element)} is read and was never stored"
                self._fail(at, env, reason + self._stores_to(source))
            value = elements[element]
            if noted:
                note(env, element, value)
            return value

        return load

    # indices

    def _element(self, at: ir.Stmt, bounds: expr.Bounds) -> Callable[[expr.Element], IndexFunction]:
        def compiled(element: expr.Element) -> IndexFunction:
            load = self._load(at, element.source, element.indices, bounds)
            return lambda env: int(load(env))

        return compiled

    def _offset(
        self, at: ir.Stmt, cell: Cell, indices: tuple[expr.Index, ...], bounds: expr.Bounds
    ) -> IndexFunction:
        """The row-major number of an element; indices that are not provably inside are checked."""
        if len(indices) != len(cell.shape):
            self._fail(at, None, f"{cell.buffer} has another number of dimensions")
        element = self._element(at, bounds)
        parts = [
            (compile_index(index, self._places, element), extent, axis)
            for axis, (index, extent) in enumerate(zip(indices, cell.shape, strict=True))
        ]
        reads_memory = any(True for _ in buffers_of_index(*indices))
        sure = all(_is_inside(i, n, bounds) for i, n in zip(indices, cell.shape, strict=True))
        if sure and not reads_memory:
            flat: expr.Index = 0
            for index, extent in zip(indices, cell.shape, strict=True):
                flat = flat * extent + index
            return compile_index(flat, self._places, element)

        def checked(env: Environment) -> int:
            element = 0
            for index, extent, axis in parts:
                value = index(env)
                if not 0 <= value < extent:
                    text = f"index {axis} of {cell.buffer.name} is {value}, outside 0..{extent}"
                    self._fail(at, env, text)
                element = element * extent + value
            return element

        return checked


def _element(cell: Cell, element: int) -> str:
    indices = ", ".join(str(int(n)) for n in np.unravel_index(element, cell.shape))
    return f"{cell.buffer.name}[{indices}]"


def _early(cell: Cell, element: int, done: str, other: ir.Stmt) -> str:
    """The message that an element is touched while a copy to it is in flight."""
    copied = f"a copy to it is in flight, started in: {_line_of(other)}"
    return f"{_element(cell, element)} is {done} too early: {copied}"


def _other_place(other: ir.Stmt | None, at: ir.Stmt) -> str:
    """The statement that touched an element before, where it is not the marked one."""
    return "" if other is None or other is at else f"; the other one is in: {_line_of(other)}"


def _line_of(statement: ir.Stmt) -> str:
    """The first line of a statement."""
    page = Printer()
    ir.print_statement(statement, page)
    return str(page).splitlines()[0].strip()


def _is_inside(index: expr.Index, extent: int, bounds: Mapping[expr.Var, expr.Range]) -> bool:
    return expr.is_nonnegative(index, bounds) and expr.is_nonnegative(extent - 1 - index, bounds)


def _sequence(actions: tuple[Action, ...]) -> Action:
    def run(env: Environment) -> None:
        for action in actions:
            action(env)

    return run


def _applied(function: Callable[..., Any], parts: tuple[Compute, ...]) -> Compute:
    if len(parts) == 1:
        (only,) = parts
        return lambda env: function(only(env))
    first, second = parts
    return lambda env: function(first(env), second(env))
