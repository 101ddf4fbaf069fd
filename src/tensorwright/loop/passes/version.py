"""Give whole tiles a version without guards, and tiles with one row.

Write out short loops whose iterations differ in guards.
"""

from __future__ import annotations

from tensorwright import expr
from tensorwright.loop import traversal
from tensorwright.loop.ir import Allocate, Block, For, If, LoopProgram, Stmt, block
from tensorwright.loop.passes.simplify import (
    affine_in,
    guards_of,
    is_contradictory,
    simplify_loops,
    simplify_statement,
)
from tensorwright.schedule import ForKind

_OUTER_KINDS = frozenset((ForKind.SERIAL, ForKind.PARALLEL))
_KINDS_OF_ROWS = _OUTER_KINDS | {ForKind.UNROLLED, ForKind.VECTOR}


def version_guards(program: LoopProgram, max_statements: int = 512) -> LoopProgram:
    """Test once per tile whether all guards inside hold, and run a version without them if so.

    Rewrite:  for i_o in 0..63: for i_i in 0..16: if i_o*16 + i_i < 1000: S
                  ->  for i_o in 0..63:
                        if i_o < 62: for i_i in 0..16: S
                        if 62 <= i_o: for i_i_1 in 0..8: S[i_o := 62]
    Where several loops have tiles, one condition covers them all, so that a nest becomes two and
    not four.  Tiles at the one end of a range and at the other have versions of their own, and so
    have tiles with one row of a named size: a decoder's step has one row.  Neighbours in a block
    with equal conditions are versioned together, others separately.  The loop that is copied is
    the outermost one in which every guard that can be decided is decided.
    Theorem:  a guard g >= 0 holds in all iterations of a nest if the low end of g's interval over
              the nest's own variables is >= 0; that end depends on the variables outside only.
    """
    version = _Version(
        traversal.Namer(program), max_statements - traversal.total_size((program.body,))
    )
    body = version.inside(program.body, {})
    return simplify_loops(LoopProgram(program.name, program.parameters, body))


class _Version:
    """The names and the statements that may still be added; mutable, one per run."""

    def __init__(self, namer: traversal.Namer, room: int) -> None:
        self._namer = namer
        self._room = room

    def inside(self, statement: Stmt, bounds: expr.Bounds) -> Stmt:
        """Version the nests inside loops around which no guard can be decided."""
        if isinstance(statement, For):
            if statement.kind not in _OUTER_KINDS or traversal.has_barrier(statement):
                return statement
            below = {**bounds, statement.var: expr.Range.of_extent(statement.extent)}
            return traversal.map_children(lambda body: self.nest(body, below), statement)
        return traversal.map_children(lambda child: self.inside(child, bounds), statement)

    def nest(self, statement: Stmt, bounds: expr.Bounds) -> Stmt:
        """Version a statement in the body of a loop, or what is inside it."""
        match statement:
            case Allocate() | If():
                return traversal.map_children(lambda child: self.nest(child, bounds), statement)
            case Block(statements):
                return self._neighbours(statements, bounds)
            case For():
                return self._neighbours((statement,), bounds)
            case _:
                return statement

    def _neighbours(self, statements: tuple[Stmt, ...], bounds: expr.Bounds) -> Stmt:
        """Version statements in order, neighbours of one condition together."""
        done: list[Stmt] = []
        group: list[tuple[Stmt, Stmt]] = []
        asked: expr.Condition = True
        for statement in statements:
            decided = _decided(statement, bounds) if isinstance(statement, For) else {}
            if isinstance(statement, For) and _decided_below(statement, bounds) - decided.keys():
                decided = {}  # a loop inside can decide more
            whole = expr.all_of(*decided.values())
            if is_contradictory(whole):  # every tile here has a border; nests inside may have none
                whole = False
            if group and whole != asked:
                done.append(self._versions(asked, group, bounds))
                group = []
            if isinstance(whole, bool):
                deeper = isinstance(statement, For)
                done.append((self.inside if deeper else self.nest)(statement, bounds))
            else:
                asked = whole
                group.append((statement, _without(statement, frozenset(decided))))
        return block(*done, *([self._versions(asked, group, bounds)] if group else []))

    def _versions(
        self, whole: expr.Condition, group: list[tuple[Stmt, Stmt]], bounds: expr.Bounds
    ) -> Stmt:
        """The versions for whole tiles, for those of one row alone, and for others."""
        guarded = block(*(statement for statement, _ in group))
        otherwise = _otherwise(whole)
        growth = len(otherwise) * traversal.total_size((guarded,))
        if growth > self._room:
            return guarded
        self._room -= growth
        clean = block(*(statement for _, statement in group))
        others: list[Stmt] = []
        for each in otherwise:
            alone, first = _first_alone(guarded, bounds)
            is_short = traversal.total_size((first,)) <= self._room
            if isinstance(alone, bool) or not is_short:
                others.append(If(each, traversal.freshen(guarded, self._namer)))
                continue
            self._room -= traversal.total_size((first,))
            versions = (alone, first), (expr.negate(alone), guarded)
            others += (
                If(expr.all_of(each, at), traversal.freshen(version, self._namer))
                for at, version in versions
            )
        return block(If(whole, clean), *others)


def _first_alone(statement: Stmt, bounds: expr.Bounds) -> tuple[expr.Condition, Stmt]:
    """When only the first iterations of guarded loops do something, and the statement then.

    Rewrite:  for i in 0..4 @unroll: if t*4 + i < n: S    ->    if n <= t*4 + 1: S[i := 0]
    The condition is true where no loop is so guarded, and false where loops differ in it.
    Requires: the guard has a named size, no variable bound inside, and ceases to hold along i.
    """
    asked: set[expr.Condition] = set()
    inside = {each.var for each in traversal.walk(statement) if isinstance(each, For)}

    def first(each: Stmt) -> Stmt:
        is_of_rows = isinstance(each, For) and each.kind in _KINDS_OF_ROWS and each.extent != 1
        if isinstance(each, For) and is_of_rows and isinstance(each.body, If):
            for guard in expr.conjuncts(each.body.condition):
                end = _end_behind_first(guard, each.var)
                sides = tuple(expr.condition_sides(end))
                if inside.isdisjoint(expr.free_vars(*sides)) and expr.named_sizes_of(*sides):
                    asked.add(expr.simplify_condition(end, bounds))
                    body = traversal.substitute_statement(each.body, {each.var: 0})
                    return simplify_statement(traversal.map_children(first, body), bounds)
        return traversal.map_children(first, each)

    short = first(statement)
    return (asked.pop() if len(asked) == 1 else not asked), short


def _end_behind_first(guard: expr.Condition, var: expr.Var) -> expr.Condition:
    """The condition that a guard holds for no value of a variable but 0; false if not known."""
    gap = expr.gap_of(guard) if isinstance(guard, expr.Compare) else None
    split = affine_in(gap, var) if gap is not None else None
    if split is None or split[0] > 0 or traversal.reads_memory(split[1]):
        return False
    return _nonnegative(-1 - split[1] - split[0])


def _otherwise(whole: expr.Condition) -> tuple[expr.Condition, ...]:
    """Conditions of which exactly one holds if `whole` does not: one for each end of a range."""
    parts = expr.conjuncts(whole)
    atoms = [atom for atom, _, _ in expr.limits_of(parts)]
    if len(parts) == len(atoms) == 2 and atoms[0] == atoms[1]:
        one, other = parts
        return expr.negate(one), expr.all_of(one, expr.negate(other))
    return (expr.negate(whole),)


def _decided(nest: Stmt, bounds: expr.Bounds) -> dict[expr.Condition, expr.Condition]:
    """Guards inside, each with what must hold outside so that it holds in every iteration.

    Left out are guards that never hold in all iterations, guards that read memory, and guards that
    hold everywhere for some sizes, or some lengths of a loop, and not for others: inside, most
    tiles are whole.
    """
    required: dict[expr.Condition, expr.Condition] = {}
    never: set[expr.Condition] = set()
    for guard, inner in guards_of(nest, {}):
        gap = expr.gap_of(guard)
        reach = expr.interval(gap, inner) if gap is not None else None
        moving = expr.free_vars(guard.left, guard.right) & inner.keys()
        is_of_length = any(expr.free_vars(inner[var].high) for var in moving)
        if reach is None or is_of_length or traversal.reads_memory(reach.low):
            never.add(guard)
            continue
        holds = expr.simplify_condition(_nonnegative(reach.low), bounds)
        required[guard] = expr.all_of(required.get(guard, expr.all_of()), holds)
        whole = required[guard]
        of_sizes = not isinstance(whole, bool) and not expr.free_vars(*expr.condition_sides(whole))
        if whole is False or of_sizes:
            never.add(guard)
    return {guard: holds for guard, holds in required.items() if guard not in never}


def _nonnegative(index: expr.Index) -> expr.Condition:
    """index >= 0 without negative terms; with one variable alone, as a limit of that variable."""
    terms = dict(expr.terms_of(index))
    rest = terms.pop((), 0)
    if len(terms) == 1:
        ((monomial, scale),) = terms.items()
        if len(monomial) == 1 and isinstance(monomial[0], expr.Var):
            if scale > 0:
                return expr.compare(expr.Relation.LE, -(rest // scale), monomial[0])
            return expr.compare(expr.Relation.LT, monomial[0], rest // -scale + 1)
    low: expr.Index = 0
    for monomial, scale in expr.terms_of(index):
        if scale < 0:
            product: expr.Index = -scale
            for atom in monomial:
                product = product * atom
            low = low + product
    return expr.compare(expr.Relation.LE, low, index + low)


def _decided_below(loop: For, bounds: expr.Bounds) -> frozenset[expr.Condition]:
    """The guards that can be decided in some nest further inside."""
    if loop.kind not in _OUTER_KINDS:
        return frozenset()
    below = {**bounds, loop.var: expr.Range.of_extent(loop.extent)}
    guards: set[expr.Condition] = set()
    for nest in _nests(loop.body):
        guards |= _decided(nest, below).keys() | _decided_below(nest, below)
    return frozenset(guards)


def _nests(statement: Stmt) -> tuple[For, ...]:
    """The outermost loops inside."""
    if isinstance(statement, For):
        return (statement,)
    return tuple(nest for child in traversal.children_of(statement) for nest in _nests(child))


def _without(statement: Stmt, holding: frozenset[expr.Condition]) -> Stmt:
    """The statement given that some comparisons hold."""
    return traversal.map_statement(
        statement,
        lambda index: index,
        condition=lambda each: expr.map_comparisons(each, lambda part: part in holding or part),
    )


_MOST_COPIES = 4  # of a loop
_LARGEST_COPIES = 256  # statements of all copies
_MOST_STATEMENTS = 1024  # of copies, when what is unrolled inside is written out as well


def unroll_guarded(program: LoopProgram) -> LoopProgram:
    """Replace short loops by copies, where guards inside ask for them.

    Rewrite:  for t in 0..3: for k in 0..n: for i in 0..4 @unroll: if 1 <= i + t: S
                  ->  for k in 0..n: for i in 1..4 @unroll: S[t := 0];
                      for k in 0..n: for i in 0..4 @unroll: S[t := 1]; ...
    Each copy can be cut where its own guards change, and no guard is left in the innermost loops.

    Loops over a few tiles of lanes are unrolled, too: most of such tiles are at an end, and their
    guards are decided once their positions are numbers.
    """
    namer = traversal.Namer(program)

    def unroll(statement: Stmt) -> Stmt:
        moved = traversal.map_children(unroll, statement)
        if not isinstance(moved, For) or not isinstance(moved.extent, int):
            return moved
        if not _is_wanted(moved, moved.extent):
            return moved
        copies = [
            traversal.substitute_statement(
                moved.body if n == 0 else traversal.freshen(moved.body, namer), {moved.var: n}
            )
            for n in range(moved.extent)
        ]
        return block(*copies)

    body = unroll(program.body)
    if body == program.body:  # as most often
        return program
    return simplify_loops(LoopProgram(program.name, program.parameters, body))


def _is_wanted(loop: For, copies: int) -> bool:
    """Whether a loop is short enough, and guards inside ask for it."""
    if loop.kind is not ForKind.SERIAL or copies > _MOST_COPIES:
        return False
    if copies * traversal.total_size((loop.body,)) > _LARGEST_COPIES:
        return False
    is_small = copies * _written_size(loop.body) <= _MOST_STATEMENTS
    return _is_asked_for(loop) or (is_small and _guards_lanes(loop))


def _is_asked_for(loop: For) -> bool:
    """Whether the variable of a loop is in a guard inside an unrolled loop, with that one's; and
    whether there is a loop between that no guard depends on.
    """
    inside = tuple(traversal.walk(loop.body))
    loops = [each for each in inside if isinstance(each, For)]
    asked = [
        expr.free_vars(*expr.condition_sides(each.condition))
        for each in inside
        if isinstance(each, If)
    ]
    unrolled = {each.var for each in loops if each.kind is ForKind.UNROLLED}
    between = {each.var for each in loops if each.kind is ForKind.SERIAL}
    is_asked = any(loop.var in names and names & unrolled for names in asked)
    return is_asked and bool(between.difference(*asked))


def _guards_lanes(loop: For) -> bool:
    """Whether the variable of a loop is in a guard with that of a vectorised loop inside and that
    of an unrolled one: lanes of a window.
    """
    loops = [each for each in traversal.walk(loop.body) if isinstance(each, For)]
    lanes, taps = (
        {each.var for each in loops if each.kind is kind}
        for kind in (ForKind.VECTOR, ForKind.UNROLLED)
    )
    if not (lanes and taps):
        return False
    asked = (expr.free_vars(guard.left, guard.right) for guard, _ in guards_of(loop.body, {}))
    return any(loop.var in names and names & lanes and names & taps for names in asked)


def _written_size(statement: Stmt) -> int:
    """How many statements there are when what is unrolled is written out."""
    inner = sum(_written_size(child) for child in traversal.children_of(statement)) or 1
    if not isinstance(statement, For) or statement.kind is not ForKind.UNROLLED:
        return inner
    return inner * statement.extent if isinstance(statement.extent, int) else inner
