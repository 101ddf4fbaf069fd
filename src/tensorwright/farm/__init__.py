"""Many machines: units of work that other machines do.

Read `farm.py` first: a unit and how it may end, what a client asks of a farm, and what workers
call. `serving.py` is the worker's side.
"""

from tensorwright.farm.connecting import (
    NO_SECURITY, FarmSecurity, connect, dask_part, make_keys, opened_farm,
)
from tensorwright.farm.farm import (
    FUNCTIONS, Device, Farm, FarmOutcome, FarmWorker, LocalFarm, Lost, NamedFunction, Payload, Unit,
    call_named, function_named, raise_if_refused,
)
from tensorwright.farm.serving import (
    Server, WrongKeyError, device_for, farm_version, name_worker, now, own_device, worker_name,
)
from tensorwright.farm.stdio import StdioFarm, serve as serve_stdio
