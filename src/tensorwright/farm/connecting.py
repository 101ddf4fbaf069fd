"""Connect to a farm by its address."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorwright.base import MachineError
from tensorwright.farm.farm import Farm
from tensorwright.farm.security import NO_SECURITY, FarmSecurity

_DASK = "tensorwright.farm.dask"


def connect(address: str, security: FarmSecurity = NO_SECURITY) -> Farm:
    """The farm at an address: tcp://HOST:PORT or tls://HOST:PORT of a scheduler.

    Raises:  MachineError if the extra is not installed, or nobody answers; UsageError for an
             address without protection, and for one that is no address.
    """
    farm: Farm = dask_part("client").DaskFarm(address, security)
    return farm


@contextmanager
def opened_farm(
    workers: str | Farm | None, security: FarmSecurity = NO_SECURITY
) -> Iterator[Farm | None]:
    """The farm at an address, closed after the block; a farm of the caller's, or None, as it is.

    Raises:  as `connect`.
    """
    if not isinstance(workers, str):
        yield workers
        return
    with connect(workers, security) as farm:
        yield farm


def dask_part(module: str) -> Any:
    """A module of the folder `dask`.

    Raises:  MachineError if Dask is not installed.
    """
    if importlib.util.find_spec("distributed") is None:
        raise MachineError(
            stage="farm",
            where="package distributed",
            reason="it is not installed: it hands units to the workers of a farm",
            remedy="pip install 'tensorwright[farm]'",
        )
    return importlib.import_module(f"{_DASK}.{module}")
