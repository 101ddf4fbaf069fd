"""Random networks of short numbers are compared with exact numbers; a drill draws hundreds."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from tests.draws import first_seed

from tensorwright_lab.judging import short_networks

DAILY = 4


@pytest.mark.drawn
@pytest.mark.parametrize("check", [short_networks.check_product, short_networks.check_quantised])
def test_answers_are_what_networks_mean(check: Any) -> None:
    for seed in range(first_seed(), first_seed() + DAILY):
        assert check(seed)


def test_a_wrong_code_is_found() -> None:
    drawing = short_networks.Quantised(random.Random(3), np.random.default_rng(3), is_exact=True)
    drawing.finish()
    last = drawing.layers[-1]
    codes = np.round(drawing.values[last.name] / last.scale) + last.zero
    drawing.compare({f"{last.name}_codes": codes})
    codes.flat[0] += 1
    with pytest.raises(short_networks.WrongNumbersError, match="1 of"):
        drawing.compare({f"{last.name}_codes": codes})
