"""E-graphs of other tools: what is read is what was written, and faults are named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.rewriting.extraction.problems import merged, random_problem

from tensorwright.base import UsageError
from tensorwright.rewriting.extraction import ExtractionProblem
from tensorwright_lab.exact_extraction import read_egraph, write_egraph


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.drawn
def test_what_is_written_is_read_again(seed: int, tmp_path: Path) -> None:
    problem = random_problem(seed)
    used = [*range(len(problem.members))]
    operators = [f"op{node}" for node in range(len(problem.cost))]
    names = [f"class{name}" for name in used]
    write_egraph(tmp_path / "graph.json", problem, operators, names)
    found = read_egraph(tmp_path / "graph.json")
    own = {name: n for n, name in enumerate(found.class_names)}
    assert [own[names[name]] for name in problem.node_class] == [*found.problem.node_class]
    assert found.problem.cost == problem.cost
    assert found.operators == tuple(operators)
    assert tuple(own[names[root]] for root in problem.roots) == found.problem.roots
    below = [tuple(own[names[each]] for each in children) for children in problem.children]
    assert below == [*found.problem.children]


def document(**changes: object) -> dict[str, object]:
    node: dict[str, object] = {"op": "relu", "children": [], "eclass": "a", "cost": 1.0}
    return {"nodes": {"a0": node | changes}, "root_eclasses": ["a"]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "cannot be read"),
        ("[]", 'has no table "nodes"'),
        (json.dumps(document() | {"root_eclasses": []}), "names no class"),
        (json.dumps(document() | {"root_eclasses": ["b"]}), "root class 'b' has no node"),
        (json.dumps(document(eclass=3)), "node 'a0'.*has no \"eclass\""),
        (json.dumps(document(children=["b0"])), "node 'a0'.*child 'b0' is not a node"),
        (json.dumps(document(children=7)), "node 'a0'.*\"children\" is not a list"),
        (json.dumps(document(cost=-1)), "node 'a0'.*costs -1"),
        (json.dumps(document(cost="1")), "node 'a0'.*costs '1'"),
    ],
)
def test_faults_name_the_node(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_text(content)
    with pytest.raises(UsageError, match=message):
        read_egraph(path)


def test_a_node_without_a_cost_costs_1(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_text('{"nodes": {"a0": {"op": "x", "eclass": "a"}}, "root_eclasses": ["a"]}')
    assert read_egraph(path).problem.cost == (1.0,)


def test_classes_are_named_by_number_where_no_names_are_given(tmp_path: Path) -> None:
    problem: ExtractionProblem = merged()
    write_egraph(tmp_path / "graph.json", problem, ["op"] * len(problem.cost))
    assert set(read_egraph(tmp_path / "graph.json").class_names) == {"0", "1", "2", "3", "4"}
