"""A session whose candidates are built and measured by the workers of a farm.

`builder.py` and `runner.py` are what a session has here in place of a `PoolBuilder` and a
`ChildRunner`; `worker_functions.py` is what workers do.
"""

from tensorwright.tuning.on_farm.builder import FarmBuilder
from tensorwright.tuning.on_farm.devices import DevicePool, kind_for
from tensorwright.tuning.on_farm.runner import FarmRunner, agree

__all__ = ["DevicePool", "FarmBuilder", "FarmRunner", "agree", "kind_for"]
