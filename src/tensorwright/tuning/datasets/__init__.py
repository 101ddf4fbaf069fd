"""From measurements to what cost models learn from: `dataset.py`; `collect.py` measures some."""

from tensorwright.tuning.datasets.collect import CollectSetting, collect, known_records
from tensorwright.tuning.datasets.dataset import Dataset, dataset, find_sketch

__all__ = ["CollectSetting", "Dataset", "collect", "dataset", "find_sketch", "known_records"]
