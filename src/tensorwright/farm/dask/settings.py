"""The settings of Dask for a farm, and the addresses to which it may connect."""

from __future__ import annotations

from urllib.parse import urlsplit

import dask
from distributed import Security

from tensorwright.base import UsageError
from tensorwright.farm.security import FarmSecurity, loopback_of

SETTINGS = {
    "distributed.scheduler.work-stealing": False,  # with resources it moved units to wrong workers
    "distributed.scheduler.allowed-failures": 1,
    "distributed.scheduler.worker-saturation": 1.0,
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.disk": False,
    "distributed.admin.system-monitor.interval": "5s",  # it wakes a machine that measures
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.low-level-log-length": 100,
    "distributed.comm.timeouts.connect": "10s",
    "distributed.comm.timeouts.tcp": "30s",
}


def apply_settings() -> None:
    """Apply the settings to this process, which must be a process of tensorwright alone."""
    dask.config.set(SETTINGS)


def dask_security(address: str, security: FarmSecurity) -> Security | None:
    """The security of a connection to an address, or of a scheduler that listens there.

    Raises:  UsageError for a wrong scheme, for damaged keys, and without keys for any address but
             loopback.
    """

    def refused(reason: str, remedy: str) -> UsageError:
        return UsageError(stage="farm", where=f"address {address}", reason=reason, remedy=remedy)

    parts = urlsplit(address)
    if parts.scheme not in ("tcp", "tls") or parts.hostname is None:
        raise refused(
            "it is not of the form tcp://HOST:PORT or tls://HOST:PORT",
            "copy it from the first line that `tensorwright farm scheduler` prints",
        )
    if security.folder is None:
        if parts.scheme == "tls":
            raise refused(
                "TLS needs keys, and none are given",
                "give the folder of `tensorwright farm keys` with --keys",
            )
        if not (security.is_insecure or loopback_of(parts.hostname)):
            raise refused(
                "without keys, anyone in that network could run programs on the farm",
                "make keys with `tensorwright farm keys FOLDER` and give --keys FOLDER; "
                "--insecure goes on without keys",
            )
        return None
    if parts.scheme != "tls":
        raise refused("keys are given, but tcp:// does not encrypt", f"tls://{parts.netloc}")
    made = Security(require_encryption=True, **security.files())
    try:
        made.get_connection_args("client")
    except (OSError, ValueError) as error:
        reason = f"its keys are damaged, or belong to several farms ({error})"
        raise security.fault(f"folder {security.folder}", reason) from error
    return made
