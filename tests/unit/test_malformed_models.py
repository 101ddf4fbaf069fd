"""A tenth of the drill: damaged models are compiled or refused, in bounded time and memory."""

from __future__ import annotations

import pytest
from benchmarks.correctness.malformed_models import attempt, damaged_model, drill, small_models
from tests.draws import first_seed

MODELS = tuple(small_models().values())


def test_the_models_are_sound() -> None:
    assert {attempt(data) for data in MODELS} == {"compiled"}


@pytest.mark.drawn
def test_damaged_models_end_well() -> None:
    ends = list(drill(MODELS, range(first_seed(), first_seed() + 50), workers=2))
    assert [str(end) for end in ends if end.fault] == []
    assert {"compiled", "ModelError", "UnsupportedError"} <= {end.kind for end in ends}


def test_a_seed_gives_one_file() -> None:
    assert damaged_model(MODELS, 7) == damaged_model(MODELS, 7)
    assert len({damaged_model(MODELS, seed) for seed in range(50)}) > 40
