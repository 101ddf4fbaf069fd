"""What operators cost by those like them in programs."""

from __future__ import annotations

import pytest

from tensorwright.rewriting.candidates import ProjectedCosts
from tensorwright.rewriting.networks import Roofline, TensorData, TypedOperator

USUAL = Roofline()


def product(m: int, k: int, n: int) -> TypedOperator:
    args = (TensorData((m, k)), TensorData((k, n), is_constant=True))
    return TypedOperator("matmul", (), args, TensorData((m, n)))


def total(shape: tuple[int, ...], *, constant_first: bool = False) -> TypedOperator:
    args = (TensorData(shape, is_constant=constant_first),)
    args += (TensorData(shape, is_constant=not constant_first),)
    return TypedOperator("ewadd", (), args, TensorData(shape))


def error(costs: ProjectedCosts, use: TypedOperator) -> float:
    """How many times its roofline an operator costs."""
    return costs.seconds(use) / USUAL.seconds(use)


def test_without_a_program_the_roofline_says_it() -> None:
    assert error(ProjectedCosts(), product(64, 256, 256)) == 1.0


def test_a_product_costs_what_one_alike_took() -> None:
    costs, use = ProjectedCosts(), product(64, 256, 256)
    costs.learn([(use, 3.0 * USUAL.seconds(use))])
    assert error(costs, use) == pytest.approx(3.0)


def test_the_nearest_count_most() -> None:
    costs = ProjectedCosts()
    small, large = product(64, 256, 256), product(64, 256, 4096)
    costs.learn([(small, 2.0 * USUAL.seconds(small)), (large, 8.0 * USUAL.seconds(large))])
    near_small, near_large = (error(costs, product(64, 256, n)) for n in (512, 2048))
    assert 2.0 < near_small < 4.0 < near_large < 8.0
    assert near_small * near_large == pytest.approx(16.0)


def test_what_others_join_costs_as_much_as_the_dearest_alike() -> None:
    costs, use = ProjectedCosts(), total((64, 256))
    costs.learn([(use, factor * USUAL.seconds(use)) for factor in (2.0, 5.0, 3.0)])
    assert error(costs, use) == pytest.approx(5.0)
    assert error(costs, total((64, 256), constant_first=True)) == pytest.approx(5.0)
    assert error(costs, total((64, 512))) == 1.0


def test_what_was_learned_counts_for_what_was_asked_before() -> None:
    costs, use = ProjectedCosts(), product(64, 256, 256)
    before = costs.seconds(use)
    costs.learn([(use, 2.0 * before)])
    assert costs.seconds(use) == pytest.approx(2.0 * before)


def test_constants_cost_nothing() -> None:
    data = TensorData((8, 8), is_constant=True)
    assert ProjectedCosts().seconds(TypedOperator("ewadd", (), (data, data), data)) == 0.0
