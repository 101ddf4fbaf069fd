"""Many machines: units of work that other machines do.

Read `unit.py` first (a unit and how it may end), then `farm.py` (what a client asks of a farm) and
`functions.py` (what workers call).  `serving.py` is the worker's side.
"""

from tensorwright.farm.connecting import connect, dask_part, make_keys, opened_farm
from tensorwright.farm.device_state import (
    device_for,
    name_worker,
    now,
    own_device,
    worker_name,
)
from tensorwright.farm.farm import Device, Farm, FarmWorker, raise_if_refused, value_of
from tensorwright.farm.functions import FUNCTIONS, NamedFunction, function_named
from tensorwright.farm.local import CALLER, LocalFarm, answers
from tensorwright.farm.messages import WrongKeyError, farm_version
from tensorwright.farm.security import NO_SECURITY, FarmSecurity
from tensorwright.farm.serving import Server
from tensorwright.farm.stdio import StdioFarm
from tensorwright.farm.stdio import serve as serve_stdio
from tensorwright.farm.unit import FarmOutcome, Lost, Payload, Unit

__all__ = [
    "CALLER",
    "FUNCTIONS",
    "NO_SECURITY",
    "Device",
    "Farm",
    "FarmOutcome",
    "FarmSecurity",
    "FarmWorker",
    "LocalFarm",
    "Lost",
    "NamedFunction",
    "Payload",
    "Server",
    "StdioFarm",
    "Unit",
    "WrongKeyError",
    "answers",
    "connect",
    "dask_part",
    "device_for",
    "farm_version",
    "function_named",
    "make_keys",
    "name_worker",
    "now",
    "opened_farm",
    "own_device",
    "raise_if_refused",
    "serve_stdio",
    "value_of",
    "worker_name",
]
