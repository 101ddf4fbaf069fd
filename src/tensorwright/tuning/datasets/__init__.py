"""From records to what cost models learn from: `dataset.py`; `workload_text.py` reads workloads."""

from tensorwright.tuning.datasets.dataset import Dataset, dataset, find_sketch
from tensorwright.tuning.datasets.workload_text import parse_workload

__all__ = [
    "Dataset",
    "dataset",
    "find_sketch",
    "parse_workload",
]
