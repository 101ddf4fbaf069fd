"""Connect to a farm by its address.

What protects a farm: certificates for TLS, and a key that all its machines share.
"""

from __future__ import annotations

import importlib
import importlib.util
import ipaddress
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorwright.base import MachineError, UsageError, option
from tensorwright.farm.farm import Farm
from tensorwright.farm.stdio import StdioFarm, commands_of

AUTHORITY = "ca.pem"
CERTIFICATE = "farm.pem"
PRIVATE_KEY = "farm.key"
SHARED_KEY = "shared.key"
SHARED_BYTES = 32


@dataclass(frozen=True, slots=True)
class FarmSecurity:
    """How the machines of a farm trust each other.

    folder        with the keys that `tensorwright farm keys` made; None allows loopback only
    is_insecure   whether other addresses are allowed without keys
    """

    folder: Path | None = option(
        None,
        "The keys of the farm, made by `tensorwright farm keys`.",
        kind=Path,
        metavar="FOLDER",
        spelling="keys",
    )
    is_insecure: bool = option(
        default=False,
        text="Go on without keys even if the network can listen.",
        spelling="insecure",
    )

    @property
    def key(self) -> bytes:
        """The shared key; b"" without a folder.

        Raises:  UsageError if it cannot be read or has another length.
        """
        if self.folder is None:
            return b""
        key = self._read(SHARED_KEY)
        if len(key) != SHARED_BYTES:
            reason = f"it has {len(key)} bytes, not {SHARED_BYTES}"
            raise self.fault(f"file {self.folder / SHARED_KEY}", reason)
        return key

    def files(self) -> dict[str, str]:
        """The files of TLS, by the names of the arguments of `distributed.Security`.

        Raises:  UsageError if one is missing.
        """
        if self.folder is None:
            return {}
        names = (AUTHORITY, CERTIFICATE, PRIVATE_KEY)
        for name in names:
            self._read(name)
        authority, certificate, private = (str(self.folder / name) for name in names)
        files = {"tls_ca_file": authority}
        for side in ("client", "scheduler", "worker"):
            files |= {f"tls_{side}_cert": certificate, f"tls_{side}_key": private}
        return files

    def _read(self, name: str) -> bytes:
        path = (self.folder or Path()) / name
        try:
            return path.read_bytes()
        except OSError as error:
            raise self.fault(f"file {path}", f"it cannot be read: {error.strerror}") from error

    def fault(self, where: str, reason: str) -> UsageError:
        """The error that keys cannot be used."""
        remedy = "make keys with `tensorwright farm keys FOLDER`, and copy the folder"
        return UsageError(stage="farm", where=where, reason=reason, remedy=remedy)


NO_SECURITY = FarmSecurity()


def loopback_of(host: str) -> str:
    """The address of a host that only this machine can reach; "" if others can, or none is known.

    All who listen ask this function, and listen at the address and not at the name. IPv6 stands in
    brackets, as Dask wants it.
    """
    try:
        answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ""
    addresses = [str(answer[4][0]) for answer in answers]
    is_here = all(ipaddress.ip_address(each).is_loopback for each in addresses)
    return in_brackets(min(addresses, key=lambda each: ":" in each)) if is_here else ""


def in_brackets(host: str) -> str:
    """A host as it stands before a port."""
    return f"[{host}]" if ":" in host else host


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
