"""Give whole tiles a version without guards."""

from __future__ import annotations

from tensorwright.expr import (
    Bounds,
    Condition,
    Index,
    Range,
    Relation,
    Var,
    all_of,
    compare,
    condition_sides,
    conjuncts,
    free_vars,
    gap_of,
    interval,
    limits_of,
    map_comparisons,
    negate,
    simplify_condition,
    terms_of,
)
from tensorwright.loop.ir import Allocate, Block, For, If, LoopProgram, Stmt, block
from tensorwright.loop.passes.guards import guards_of, is_contradictory
from tensorwright.loop.passes.simplify import simplify_loops
from tensorwright.loop.traversal import (
    Namer,
    buffers_of_index,
    children_of,
    freshen,
    has_barrier,
    map_children,
    map_statement,
    total_size,
)
from tensorwright.schedule import ForKind

_OUTER_KINDS = frozenset((ForKind.SERIAL, ForKind.PARALLEL))


def version_guards(program: LoopProgram, max_statements: int = 512) -> LoopProgram:
    """Test once per tile whether all guards inside hold, and run a version without them if so.

    Rewrite:  for i_o in 0..63: for i_i in 0..16: if i_o*16 + i_i < 1000: S
                  ->  for i_o in 0..63:
                        if i_o < 62: for i_i in 0..16: S
                        if 62 <= i_o: for i_i_1 in 0..8: S[i_o := 62]
    Where several loops have tiles, one condition covers them all, so that a nest becomes two and
    not four.  Tiles at the one end of a range and at the other have versions of their own.
    Neighbours in a block with equal conditions are versioned together, others separately.  The loop
    that is copied is the outermost one in which every guard that can be decided is decided.
    Theorem:  a guard g >= 0 holds in all iterations of a nest if the low end of g's interval over
              the nest's own variables is >= 0; that end depends on the variables outside only.
    """
    version = _Version(Namer(program), max_statements - total_size((program.body,)))
    body = version.inside(program.body, {})
    return simplify_loops(LoopProgram(program.name, program.parameters, body))


class _Version:
    """The names and the statements that may still be added; mutable, one per run."""

    def __init__(self, namer: Namer, room: int) -> None:
        self._namer = namer
        self._room = room

    def inside(self, statement: Stmt, bounds: Bounds) -> Stmt:
        """Version the nests inside loops around which no guard can be decided."""
        if isinstance(statement, For):
            if statement.kind not in _OUTER_KINDS or has_barrier(statement):
                return statement
            below = {**bounds, statement.var: Range.of_extent(statement.extent)}
            return map_children(lambda body: self.nest(body, below), statement)
        return map_children(lambda child: self.inside(child, bounds), statement)

    def nest(self, statement: Stmt, bounds: Bounds) -> Stmt:
        """Version a statement in the body of a loop, or what is inside it."""
        match statement:
            case Allocate() | If():
                return map_children(lambda child: self.nest(child, bounds), statement)
            case Block(statements):
                return self._neighbours(statements, bounds)
            case For():
                return self._neighbours((statement,), bounds)
            case _:
                return statement

    def _neighbours(self, statements: tuple[Stmt, ...], bounds: Bounds) -> Stmt:
        """Version statements in order, neighbours of one condition together."""
        done: list[Stmt] = []
        group: list[tuple[Stmt, Stmt]] = []
        asked: Condition = True
        for statement in statements:
            decided = _decided_here(statement, bounds) if isinstance(statement, For) else {}
            whole = all_of(*decided.values())
            if is_contradictory(whole):  # every tile here has a border; nests inside may have none
                whole = False
            if group and whole != asked:
                done.append(self._versions(asked, group))
                group = []
            if isinstance(whole, bool):
                deeper = isinstance(statement, For)
                done.append((self.inside if deeper else self.nest)(statement, bounds))
            else:
                asked = whole
                group.append((statement, _without(statement, frozenset(decided))))
        return block(*done, *([self._versions(asked, group)] if group else []))

    def _versions(self, whole: Condition, group: list[tuple[Stmt, Stmt]]) -> Stmt:
        """The versions for whole tiles and for others."""
        guarded = block(*(statement for statement, _ in group))
        otherwise = _otherwise(whole)
        growth = len(otherwise) * total_size((guarded,))
        if growth > self._room:
            return guarded
        self._room -= growth
        clean = block(*(statement for _, statement in group))
        others = (If(each, freshen(guarded, self._namer)) for each in otherwise)
        return block(If(whole, clean), *others)


def _otherwise(whole: Condition) -> tuple[Condition, ...]:
    """Conditions of which exactly one holds if `whole` does not: one for each end of a range."""
    parts = conjuncts(whole)
    atoms = [atom for atom, _, _ in limits_of(parts)]
    if len(parts) == len(atoms) == 2 and atoms[0] == atoms[1]:
        one, other = parts
        return negate(one), all_of(one, negate(other))
    return (negate(whole),)


def _decided_here(loop: For, bounds: Bounds) -> dict[Condition, Condition]:
    """The result of `_decided`, or nothing if a loop inside can decide more."""
    decided = _decided(loop, bounds)
    return {} if _decided_below(loop, bounds) - decided.keys() else decided


def _decided(nest: Stmt, bounds: Bounds) -> dict[Condition, Condition]:
    """Guards inside, each with what must hold outside so that it holds in every iteration.

    Left out are guards that never hold in all iterations, guards that read memory, and guards that
    hold everywhere for some sizes and not for others: inside, most tiles are whole.
    """
    required: dict[Condition, Condition] = {}
    never: set[Condition] = set()
    for guard, inner in guards_of(nest, {}):
        gap = gap_of(guard)
        reach = interval(gap, inner) if gap is not None else None
        if reach is None or any(True for _ in buffers_of_index(reach.low)):
            never.add(guard)
            continue
        holds = simplify_condition(_nonnegative(reach.low), bounds)
        required[guard] = all_of(required.get(guard, all_of()), holds)
        if required[guard] is False or _is_of_sizes(required[guard]):
            never.add(guard)
    return {guard: holds for guard, holds in required.items() if guard not in never}


def _is_of_sizes(condition: Condition) -> bool:
    return not isinstance(condition, bool) and not free_vars(*condition_sides(condition))


def _nonnegative(index: Index) -> Condition:
    """index >= 0 without negative terms; with one variable alone, as a limit of that variable."""
    terms = dict(terms_of(index))
    rest = terms.pop((), 0)
    if len(terms) == 1:
        ((monomial, scale),) = terms.items()
        if len(monomial) == 1 and isinstance(monomial[0], Var):
            if scale > 0:
                return compare(Relation.LE, -(rest // scale), monomial[0])
            return compare(Relation.LT, monomial[0], rest // -scale + 1)
    low: Index = 0
    for monomial, scale in terms_of(index):
        if scale < 0:
            product: Index = -scale
            for atom in monomial:
                product = product * atom
            low = low + product
    return compare(Relation.LE, low, index + low)


def _decided_below(loop: For, bounds: Bounds) -> frozenset[Condition]:
    """The guards that can be decided in some nest further inside."""
    if loop.kind not in _OUTER_KINDS:
        return frozenset()
    below = {**bounds, loop.var: Range.of_extent(loop.extent)}
    guards: set[Condition] = set()
    for nest in _nests(loop.body):
        guards |= _decided(nest, below).keys() | _decided_below(nest, below)
    return frozenset(guards)


def _nests(statement: Stmt) -> tuple[For, ...]:
    """The outermost loops inside."""
    if isinstance(statement, For):
        return (statement,)
    return tuple(nest for child in children_of(statement) for nest in _nests(child))


def _without(statement: Stmt, holding: frozenset[Condition]) -> Stmt:
    """The statement given that some comparisons hold."""

    def on_condition(condition: Condition) -> Condition:
        return map_comparisons(condition, lambda each: each in holding or each)

    return map_statement(statement, lambda index: index, on_condition)
