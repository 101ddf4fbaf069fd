"""From measurements to what cost models learn from: `dataset.py`; `collect.py` measures some."""

from tensorwright.tuning.datasets.collect import (
    CollectSetting,
    collect,
    known_records,
    measure_candidates,
)
from tensorwright.tuning.datasets.dataset import Dataset, dataset, find_sketch
from tensorwright.tuning.datasets.varied import Shares, varied_candidates
from tensorwright.tuning.datasets.workload_text import parse_workload

__all__ = [
    "CollectSetting",
    "Dataset",
    "Shares",
    "collect",
    "dataset",
    "find_sketch",
    "known_records",
    "measure_candidates",
    "parse_workload",
    "varied_candidates",
]
