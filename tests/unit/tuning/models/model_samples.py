"""Made-up samples for cost models: times that follow from features."""

from __future__ import annotations

import numpy as np

from tensorwright.tuning.features import FEATURE_NAMES
from tensorwright.tuning.models import Sample
from tensorwright_lab.feature_sets import LOOP_TREE, TREE_FIELDS

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


def made_up_trees(workload: str, count: int, statements: int, seed: int) -> list[Sample]:
    """Programs as rows of `loop-tree`, whose time depends on their innermost loops.

    The outermost loop is one of all statements.
    """
    source = np.random.default_rng(seed)
    width = len(TREE_FIELDS)
    length, vector = TREE_FIELDS.index("length"), TREE_FIELDS.index("is_vectorize")
    samples = []
    for _ in range(count):
        features = np.zeros((statements, len(LOOP_TREE.columns)), np.float32)
        time = 0.0
        shared = float(source.integers(1, 6))
        for row in range(statements):
            depth = int(source.integers(2, 5))
            total = shared
            for loop in range(depth):
                own = shared if loop == 0 else float(source.integers(1, 6))
                total += 0.0 if loop == 0 else own
                features[row, loop * width] = 1.0
                features[row, loop * width + 1] = 0 if loop == 0 else row
                features[row, loop * width + length] = own
            is_vector = bool(source.integers(0, 2))
            features[row, (depth - 1) * width + vector] = is_vector
            time += 2.0 ** (0.4 * (total - (4.0 if is_vector else 0.0)))
        samples.append(Sample(workload, features, time * 1e-3))
    return samples
