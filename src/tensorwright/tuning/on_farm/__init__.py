"""A session whose candidates are built and measured by the workers of a farm.

`devices.py` and `runner.py` are what a session has here in place of a `PoolBuilder` and a
`ChildRunner`; `worker_functions.py` is what workers do.
"""

from tensorwright.tuning.on_farm.devices import DevicePool, FarmBuilder, kind_for
from tensorwright.tuning.on_farm.runner import FarmRunner, agree
