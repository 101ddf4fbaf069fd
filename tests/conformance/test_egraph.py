"""What every use of the e-graph relies on: congruence, class data, rewrites, proofs, limits.

The same questions are asked with two analyses: shapes, and the least number of operators that a
term of a class has (data that change when classes are merged).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import pytest

from tensorwright.rewriting import Rule, egraph, parse_rule, parse_term, term_text
from tensorwright.rewriting.axioms import load_axioms
from tensorwright.rewriting.dims import Size
from tensorwright.rewriting.library import listed_rules
from tensorwright.rewriting.prove import problems_of
from tensorwright.rewriting.prove.saturate import ProofSearch, axiom_rewrites
from tensorwright.rewriting.terms import Apply, Fact, Input, Param, Rank, Term, input_names


@dataclass(frozen=True)
class LeastSize:
    """How many operators the smallest term of a class has; `bad` is no operator."""

    def make(self, operator: str, params: tuple[Param, ...], args: tuple[int, ...]) -> int | None:
        if operator == "bad":
            return None
        return 0 if operator == egraph.INPUT else 1 + sum(args)

    def merge(self, kept: int, lost: int) -> int:
        return min(kept, lost)

    def may_merge(self, left: int, right: int) -> bool:
        return True

    def size(self, size: Size, scope: egraph.Scope[int] | None) -> Size | None:
        return size if isinstance(size, int) else None

    def holds(self, fact: Rank | Fact, scope: egraph.Scope[int]) -> bool:
        return False

    def admits(self, rule: Rule, scope: egraph.Scope[int]) -> egraph.Applies:
        return egraph.Applies.YES


def graph_of(*texts: str, with_proofs: bool = True) -> tuple[egraph.EGraph[int], list[egraph.Id]]:
    graph = egraph.EGraph(LeastSize(), with_proofs=with_proofs)
    return graph, [added(graph, text) for text in texts]


def added(graph: egraph.EGraph[int], text: str) -> egraph.Id:
    name = graph.add(parse_term(text))
    assert name is not None
    return name


def rewrite(text: str, *, both: bool = False) -> egraph.Rewrite:
    """A rule read from left to right, or both ways."""
    rule = replace(parse_rule(text), name=text)
    sides = (rule.left, rule.right) if both else (rule.left,)
    return egraph.rewrite_of(
        rule, [[each for each in side if isinstance(each, Apply)] for side in sides]
    )


COMMUTE = rewrite("ewadd(?x, ?y) == ewadd(?y, ?x)")
ASSOCIATE = rewrite("ewadd(ewadd(?x, ?y), ?z) == ewadd(?x, ewadd(?y, ?z))", both=True)
IDEMPOTENT = rewrite("relu(relu(?x)) == relu(?x)")
PAIR = rewrite("relu(?x), exp(?x) == first(pair(?x)), second(pair(?x))")


@pytest.mark.parametrize("with_proofs", [True, False])
def test_equal_arguments_make_equal_terms(with_proofs: bool) -> None:
    graph, (one, other, far) = graph_of(
        "f(f(?a))", "f(f(?b))", "g(?a, ?b)", with_proofs=with_proofs
    )
    assert not graph.are_equal(one, other)
    assert graph.union(added(graph, "?a"), added(graph, "?b"), 7)
    assert not graph.union(added(graph, "?a"), added(graph, "?b"), 8)
    assert graph.are_equal(one, other)
    assert graph.are_equal(far, added(graph, "g(?b, ?a)"))
    assert [term_text(graph.term(each)) for each in graph.with_operator("f")] == [
        "f(?a)",
        "f(f(?a))",
    ]


def test_a_congruent_node_is_new_only_with_proofs() -> None:
    for with_proofs in (True, False):
        graph, (one,) = graph_of("f[1](?a)", with_proofs=with_proofs)
        graph.union(added(graph, "?a"), added(graph, "?b"), 0)
        other = added(graph, "f[1](?b)")
        assert graph.are_equal(one, other)
        assert (one != other) == with_proofs
        assert graph.with_operator("f") == (one,)
        assert list(graph.members(other)) == [one]


def test_nodes_tell_when_they_came() -> None:
    graph, (one,) = graph_of("f(?a)")
    graph.clock = 5
    other = added(graph, "f(?b)")
    graph.union(added(graph, "?a"), added(graph, "?b"), 0)
    assert (graph.born(one), graph.born(other)) == (0, 5)
    assert graph.changed(graph.find(added(graph, "?a"))) == 5


def test_data_are_made_and_merged_and_reach_the_terms_above() -> None:
    graph, (top, large, small) = graph_of("f(g(h(h(?a))))", "h(h(?a))", "h(?a)")
    assert [graph.data(each) for each in (top, large, small)] == [4, 2, 1]
    graph.union(large, added(graph, "?b"), 0)
    assert [graph.data(each) for each in (top, large, small)] == [2, 0, 1]
    graph.union(small, added(graph, "?b"), 0)
    assert graph.data(small) == 0
    assert graph.data(added(graph, "h(h(h(?b)))")) == 0


def test_a_term_that_the_analysis_refuses_does_not_enter() -> None:
    graph, _ = graph_of("?a")
    assert graph.add(parse_term("f(bad(?a))")) is None
    assert len(graph) == 1
    runner = egraph.Runner(graph, egraph.Limits())
    added(graph, "relu(?a)")
    assert isinstance(runner.run([rewrite("relu(?x) == bad(?x)")]), egraph.Saturated)
    assert len(graph) == 2


def test_links_have_reasons_or_come_from_congruence() -> None:
    graph, (one, other) = graph_of("f(?a)", "f(?c)")
    a, b, c = (added(graph, f"?{name}") for name in "abc")
    graph.union(a, b, 7)
    graph.union(c, b, 8)
    assert [link.reason for link in graph.explain(one, other)] == [None]
    assert [link.reason for link in graph.explain(a, c)] == [7, 8]
    with pytest.raises(ValueError, match="not known to be equal"):
        graph.explain(a, one)


@pytest.mark.parametrize("with_proofs", [True, False])
def test_a_goal_of_one_root_is_reached(with_proofs: bool) -> None:
    graph, goal = graph_of(
        "relu(ewadd(ewadd(?a, ?b), ?c))", "relu(ewadd(?c, ewadd(?b, ?a)))", with_proofs=with_proofs
    )
    stop = egraph.Runner(graph, egraph.Limits()).run([COMMUTE, ASSOCIATE], ((goal[0], goal[1]),))
    assert isinstance(stop, egraph.GoalReached)
    assert stop.nodes == len(graph)


def test_roots_are_matched_together() -> None:
    """A pair is made only where both roots have the same argument, and both roots are rewritten."""
    graph, (one, two, alone) = graph_of("relu(?a)", "exp(?a)", "exp(?b)")
    runner = egraph.Runner(graph, egraph.Limits())
    assert isinstance(runner.run([PAIR]), egraph.Saturated)
    assert graph.are_equal(one, added(graph, "first(pair(?a))"))
    assert graph.are_equal(two, added(graph, "second(pair(?a))"))
    assert list(graph.members(alone)) == [alone]
    assert len(graph.with_operator("pair")) == 1
    assert [each.rewrite for each in runner.applications] == [PAIR, PAIR]


def test_roots_are_joined_by_what_the_others_made_equal() -> None:
    graph, (one, _) = graph_of("relu(relu(?a))", "exp(relu(?a))")
    same = rewrite("relu(?x) == ?x")
    assert isinstance(egraph.Runner(graph, egraph.Limits()).run([PAIR, same]), egraph.Saturated)
    assert graph.are_equal(one, added(graph, "first(pair(?a))"))


def test_all_roots_at_one_node_are_no_match() -> None:
    graph, _ = graph_of("relu(?a)")
    merge = rewrite("relu(?x), relu(?y) == first(both(?x, ?y)), second(both(?x, ?y))")
    assert isinstance(egraph.Runner(graph, egraph.Limits()).run([merge]), egraph.Saturated)
    assert graph.with_operator("both") == ()


def test_parameter_variables_take_what_is_left() -> None:
    graph, (one,) = graph_of("relu(transpose[1, 2, 0](?a))")
    move = rewrite("relu(transpose[_p](?x)) == transpose[_p](relu(?x))")
    runner = egraph.Runner(graph, egraph.Limits())
    runner.run([move])
    assert graph.are_equal(one, added(graph, "transpose[1, 2, 0](relu(?a))"))
    assert [each.params for each in runner.applications] == [{"_p": (1, 2, 0)}]


def test_a_trigger_binds_all_variables() -> None:
    with pytest.raises(ValueError, match="does not bind"):
        rewrite("first(?x) == ewadd(?x, ?y)")


CHAIN = "ewadd(ewadd(ewadd(?a, ?b), ewadd(?c, ?d)), ewadd(?e, ?f))"


def test_why_it_stopped_is_a_value() -> None:
    def stop(limits: egraph.Limits, *rewrites: egraph.Rewrite) -> object:
        graph, _ = graph_of(CHAIN)
        return egraph.Runner(graph, limits).run(rewrites)

    assert stop(egraph.Limits(), IDEMPOTENT) == egraph.Saturated(rounds=1, nodes=11)
    assert stop(egraph.Limits(rounds=2), COMMUTE, ASSOCIATE) == egraph.BudgetSpent("rounds", 2, 105)
    full = stop(egraph.Limits(rounds=50, nodes=60), COMMUTE, ASSOCIATE)
    assert isinstance(full, egraph.BudgetSpent)
    assert (full.limit, full.nodes > 60) == ("nodes", True)
    assert stop(
        egraph.Limits(matches=1), rewrite("ewadd(?x, ?y) == ewadd(?x, ?y)")
    ) == egraph.BudgetSpent("matches", rounds=1, nodes=11)


def test_matches_beyond_the_limit_come_later() -> None:
    graph, _ = graph_of(CHAIN)
    runner = egraph.Runner(graph, egraph.Limits(matches=2, rounds=20))
    stop = runner.run([COMMUTE])
    assert len(runner.applications) == 5
    assert 3 <= stop.rounds < 20


def test_the_work_is_the_same_again() -> None:
    def work() -> list[tuple[str, egraph.Id, egraph.Id]]:
        graph, _ = graph_of(CHAIN)
        runner = egraph.Runner(graph, egraph.Limits(nodes=300))
        runner.run([COMMUTE, ASSOCIATE])
        return [(each.rewrite.name, each.left, each.right) for each in runner.applications]

    assert work() == work()


def replayed(rule: Rule, before: Term, after: Term) -> bool:
    """Whether one term becomes another by one use of the rule, at one place of it."""
    if _is_instance(rule, before, after):
        return True
    if not (isinstance(before, Apply) and isinstance(after, Apply)):
        return False
    if (before.operator, before.params) != (after.operator, after.params):
        return False
    differ = [pair for pair in zip(before.args, after.args, strict=True) if pair[0] != pair[1]]
    return len(differ) == 1 and replayed(rule, *differ[0])


def _is_instance(rule: Rule, before: Term, after: Term) -> bool:
    return any(
        (bound := _match(left, before, {})) is not None and _match(right, after, bound) is not None
        for left, right in zip(rule.left, rule.right, strict=True)
    )


def _match(pattern: Term, term: Term, bound: dict[str, object]) -> dict[str, object] | None:
    """The variables by which a pattern is a term; sizes may be anything."""
    if isinstance(pattern, Input):
        return None if bound.setdefault(pattern.name, term) != term else bound
    if not isinstance(term, Apply) or pattern.operator != term.operator:
        return None
    for place, param in enumerate(pattern.params):
        if isinstance(param, str) and param.startswith("_"):
            rest = place == len(pattern.params) - 1
            value = term.params[place:] if rest else term.params[place : place + 1]
            if bound.setdefault(param, value) != value:
                return None
        elif isinstance(param, int | str) and param != term.params[place]:
            return None
    for own, arg in zip(pattern.args, term.args, strict=True):
        if _match(own, arg, bound) is None:
            return None
    return bound


def check_chains(runner: egraph.Runner[object], goal: egraph.Goal) -> int:
    """Replay every step; how many there were."""
    rules = {(each.rewrite.name, id(each.rewrite)): each.rewrite for each in runner.applications}
    count = 0
    for left, right in goal:
        steps = tuple(egraph.chain_between(runner, left, right))
        if left != right:
            assert steps[0].before == runner.graph.term(left)
            assert steps[-1].after == runner.graph.term(right)
        assert all(one.after == other.before for one, other in pairwise(steps))
        for step in steps:
            ends = (step.before, step.after) if step.forward else (step.after, step.before)
            named = [each.rule for (name, _), each in rules.items() if name == step.rule]
            assert any(replayed(rule, *ends) for rule in named), step
            count += 1
    return count


def test_every_step_of_an_explanation_is_an_instance_of_a_rule() -> None:
    graph, (left, right) = graph_of(
        CHAIN, "ewadd(ewadd(?f, ?a), ewadd(ewadd(?b, ?e), ewadd(?d, ?c)))"
    )
    runner = egraph.Runner(graph, egraph.Limits(rounds=9, nodes=20_000, matches=10_000))
    goal = ((left, right),)
    assert isinstance(runner.run([COMMUTE, ASSOCIATE], goal), egraph.GoalReached)
    assert check_chains(runner, goal) >= 4
    assert {each.rewrite for each in egraph.used_applications(runner, goal)} <= {COMMUTE, ASSOCIATE}


@pytest.mark.parametrize("rule", listed_rules("known")[::4], ids=lambda rule: rule.name)
def test_proofs_of_known_rules_replay(rule: Rule) -> None:
    """With shapes as class data, rules of several roots among them."""
    axioms = axiom_rewrites(load_axioms())
    for problem in problems_of(rule)[:1]:
        search = ProofSearch(problem, egraph.Limits())
        goal = search.goal(rule.left, rule.right)
        assert goal is not None
        assert isinstance(search.runner.run(axioms, goal), egraph.GoalReached)
        assert check_chains(search.runner, goal) > 0
        for left, right in goal:
            data = search.graph.data
            assert data(left) == data(right)
            assert set(input_names(search.graph.term(left))) <= {n for n, _ in problem.shapes}


def test_terms_of_different_types_are_not_united() -> None:
    """A rule whose sides do not fit is not applied; ?y is square, so there both sides fit."""
    turn = rewrite("transpose[1, 0](?x) == ?x")
    rule = parse_rule("matmul(?x, ?y) == matmul(?y, ?x) if rank(x) = 2 and rank(y) = 2")
    search = ProofSearch(problems_of(rule)[0], egraph.Limits())
    assert search.goal((parse_term("matmul(?x, ?y)"),), (parse_term("?x"),)) is None
    turned = search.graph.add(parse_term("transpose[1, 0](?x)"))
    square = search.graph.add(parse_term("transpose[1, 0](matmul(?x, transpose[1, 0](?x)))"))
    assert turned is not None
    assert square is not None
    assert isinstance(search.runner.run([turn]), egraph.Saturated)
    assert not search.graph.are_equal(turned, search.graph.add(Input("x")))
    assert search.graph.are_equal(
        square, search.graph.add(parse_term("matmul(?x, transpose[1, 0](?x))"))
    )


@pytest.mark.parametrize(
    "text",
    [
        "matmul(?y, ?x)",
        "matmul(?x, ?x)",
        "ewadd(?x, ?y)",
        "concat[0](?x, ?y)",
        "split0[0, y.1](?x)",
        "relu(matmul(?y, ?x))",
    ],
)
def test_a_term_that_fits_for_some_shapes_alone_does_not_enter(text: str) -> None:
    """Of x (m, k) and y (k, n) nothing more is known: m = n and k <= m need not hold."""
    rule = parse_rule("relu(matmul(?x, ?y)) == matmul(?x, ?y) if rank(x) = 2 and rank(y) = 2")
    search = ProofSearch(problems_of(rule)[0], egraph.Limits())
    assert search.graph.add(parse_term("matmul(?x, ?y)")) is not None
    assert search.graph.add(parse_term("concat[1](?x, transpose[1, 0](?y))")) is None
    assert search.graph.add(parse_term(text)) is None
