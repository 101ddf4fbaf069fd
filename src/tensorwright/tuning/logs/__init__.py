"""Logs of other tuners and ours. Read `tasks.py` first (the programs), then `seeds.py`."""

from tensorwright.tuning.logs.export import TASK, LineWriter
from tensorwright.tuning.logs.seeds import Seed, seed_of
from tensorwright.tuning.logs.tasks import graph_of_task

__all__ = ["TASK", "LineWriter", "Seed", "graph_of_task", "seed_of"]
