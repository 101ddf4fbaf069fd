"""Connect to a farm by its address."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tensorwright.base import MachineError
from tensorwright.farm.farm import Farm
from tensorwright.farm.security import NO_SECURITY, FarmSecurity
from tensorwright.farm.stdio import StdioFarm, commands_of

_DASK = "tensorwright.farm.dask"


def connect(address: str, security: FarmSecurity = NO_SECURITY) -> Farm:
    """The farm at an address.

    The address is tcp://HOST:PORT or tls://HOST:PORT of a scheduler, or a list of machines that ssh
    reaches: ssh://HOST,ssh://USER@HOST.
    Raises:  MachineError if the extra is not installed, or nothing answers; UsageError for an
             address without protection, and for one of another form.
    """
    if address.startswith(("ssh://", "stdio:")):
        return StdioFarm(commands_of(address))
    farm: Farm = dask_part("client").DaskFarm(address, security)
    return farm


@contextmanager
def opened_farm(
    workers: str | Farm | None, security: FarmSecurity = NO_SECURITY
) -> Iterator[Farm | None]:
    """The farm at an address, closed after the block; an open farm, or None, unchanged.

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
    return _load(f"{_DASK}.{module}", "distributed", "it hands units to the workers of a farm")


def make_keys(folder: Path) -> tuple[Path, ...]:
    """Make the keys of a farm in a folder; see `keys.make_keys`.

    Raises:  MachineError if the extra is not installed; as `keys.make_keys`.
    """
    module = _load("tensorwright.farm.keys", "cryptography", "it makes the keys of a farm")
    files: tuple[Path, ...] = module.make_keys(folder)
    return files


def _load(module: str, package: str, use: str) -> Any:
    if importlib.util.find_spec(package) is None:
        raise MachineError(
            stage="farm",
            where=f"package {package}",
            reason=f"it is not installed: {use}",
            remedy="pip install 'tensorwright[farm]'",
        )
    return importlib.import_module(module)
