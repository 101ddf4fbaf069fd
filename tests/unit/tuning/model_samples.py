"""Made-up samples for cost models: times that follow from features."""

from __future__ import annotations

import numpy as np

from tensorwright.tuning.features import FEATURE_NAMES
from tensorwright.tuning.models import Sample

WIDTH = len(FEATURE_NAMES)
VARYING = 6


def made_up(workload: str, count: int, statements: int, seed: int) -> list[Sample]:
    """Programs whose time is a sum over statements that depends on a few features."""
    source = np.random.default_rng(seed)
    samples = []
    for _ in range(count):
        features = np.zeros((statements, WIDTH), np.float32)
        features[:, :VARYING] = source.integers(0, 8, (statements, VARYING))
        features[:, VARYING] = np.arange(statements)
        work = features[:, 0] + 0.5 * features[:, 1] * (features[:, 2] > 3) + 1.0
        samples.append(Sample(workload, features, float(work.sum()) * 1e-3))
    return samples
