"""What a worker does with a request: check it, do its unit in a child process, and answer.

The answer holds the outcome of the unit, whatever it is.  The time limit of a unit begins when the
unit begins, not while it waits in a queue; tvm#13963 shows why.

Requests and answers as bytes: a digest with the shared key, a head in JSON, then the blobs.

    32 bytes   HMAC-SHA256 of what follows, under the key that both sides have
     4 bytes   length of the head, little-endian
               the head: JSON in UTF-8; "blobs" has the lengths of the blobs
               the blobs, one after the other

The receiver checks the digest before it reads anything else.  Without a shared key the digest is
made with an empty key and detects damage only.  An answer repeats the digest of its request, so
that it cannot be taken for the answer to another one.

What a worker reports of its device: clock, temperature, load, and why it is set aside.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import json
import os
import struct
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tensorwright import base
from tensorwright.farm import farm
from tensorwright.machine import detect_hardware
from tensorwright.processes import Died, Done, Job, Raised, Stopped, TimedOut, WorkerPool, never
from tensorwright.version import __version__

_LENGTH = struct.Struct("<I")
_DIGEST_BYTES = 32
_ERRORS = {kind.__name__: kind for kind in base.ERROR_KINDS}
_KINDS = base.kinds_of(farm.Unit, farm.Payload, farm.Lost, Done, Raised, Died, TimedOut, Stopped)


class WrongKeyError(base.MachineError):
    """A message whose sender does not have the shared key of this side."""


@functools.cache
def farm_version() -> str:
    """The version that both sides must have: the package's, and a digest of its sources."""
    return f"{__version__}+{base.source_digest('.')[:12]}"


def pack_request(unit: farm.Unit, key: bytes) -> bytes:
    """A unit as bytes."""
    payload, plain = unit.payload, replace(unit, payload=farm.Payload())
    head = {"version": farm_version(), "unit": base.to_data(plain), "data": payload.data}
    return _pack(head, payload.blobs, key)


def unpack_request(message: bytes, key: bytes) -> farm.Unit:
    """The inverse of `pack_request`.

    Raises:  WrongKeyError; UsageError for a client of another version; ValueError for what is not a
             request.
    """
    head, blobs = _unpack(message, key)
    if head.get("version") != farm_version():
        raise other_version(str(head.get("version")))
    unit: farm.Unit = base.from_data(head.get("unit", {}), _KINDS)
    return replace(unit, payload=farm.Payload(head.get("data"), blobs))


def pack_answer(outcome: farm.FarmOutcome, request: bytes, key: bytes) -> bytes:
    """How a unit ended, as bytes."""
    head: dict[str, Any] = {"to": digest_of(request).hex()}
    blobs: tuple[bytes, ...] = ()
    match outcome:
        case Done(farm.Payload(data, blobs)):
            head["data"], outcome = data, Done(None)
        case Done(value):
            raise ValueError(
                f"a function of a farm returns a payload, not a {type(value).__name__}"
            )
        case Raised(error=base.TensorwrightError(fields=fields)):
            head["fields"], outcome = dict(fields), replace(outcome, error=None)
    return _pack({**head, "outcome": base.to_data(outcome)}, blobs, key)


def unpack_answer(message: bytes, request: bytes, key: bytes) -> farm.FarmOutcome:
    """The inverse of `pack_answer`.

    Raises:  WrongKeyError, ValueError for what is not an answer to this request.
    """
    head, blobs = _unpack(message, key)
    if head.get("to") != digest_of(request).hex():
        raise ValueError("an answer to another request")
    outcome: farm.FarmOutcome = base.from_data(head.get("outcome", {}), _KINDS)
    match outcome:
        case Done():
            return Done(farm.Payload(head.get("data"), blobs))
        case Raised(kind=kind) if "fields" in head and kind in _ERRORS:
            return replace(outcome, error=_ERRORS[kind](**head["fields"]))
    return outcome


def other_version(theirs: str) -> base.UsageError:
    """The error that two sides have different versions."""
    return base.UsageError(
        stage="farm",
        where=f"worker of version {farm_version()}",
        reason=f"the client is version {theirs}, whose kernels and times are not comparable",
        remedy="install the same version on both sides",
    )


def _pack(head: Mapping[str, Any], blobs: tuple[bytes, ...], key: bytes) -> bytes:
    text = json.dumps({**head, "blobs": [len(blob) for blob in blobs]}).encode()
    body = b"".join((_LENGTH.pack(len(text)), text, *blobs))
    return hmac.digest(key, body, "sha256") + body


def _unpack(message: bytes, key: bytes) -> tuple[dict[str, Any], tuple[bytes, ...]]:
    body = memoryview(message)[_DIGEST_BYTES:]
    if not hmac.compare_digest(hmac.digest(key, body, "sha256"), bytes(message[:_DIGEST_BYTES])):
        raise WrongKeyError(
            stage="farm",
            where="message of a farm",
            reason="its sender does not have the shared key of this side",
            remedy="give both sides the same folder of `tensorwright farm keys`",
        )
    (length,) = _LENGTH.unpack_from(body)
    end = _LENGTH.size + length
    head: dict[str, Any] = json.loads(bytes(body[_LENGTH.size : end]))
    blobs = []
    for size in head.pop("blobs"):
        blobs.append(bytes(body[end : end + size]))
        end += size
    if end != len(body):
        raise ValueError("the length of the message is not the one in its head")
    return head, tuple(blobs)


def digest_of(message: bytes) -> bytes:
    """The digest at the beginning of a message; equal units and keys give equal digests."""
    return message[:_DIGEST_BYTES]


class Server:
    """Answers requests; several threads may call it, and each gets a separate child.

    key   the shared key; b"" if there is none
    """

    def __init__(self, key: bytes = b"") -> None:
        self._key = key
        self._of_thread = threading.local()
        self._pools: list[WorkerPool] = []

    def answer(self, request: bytes, should_stop: Callable[[], bool] = never) -> bytes:
        """Do a request and pack its outcome; `should_stop` says that the client gave it up."""
        return pack_answer(self._outcome(request, should_stop), request, self._key)

    def close(self) -> None:
        """End the children."""
        for pool in self._pools:
            pool.close()

    def _outcome(self, request: bytes, should_stop: Callable[[], bool]) -> farm.FarmOutcome:
        try:
            unit = unpack_request(request, self._key)
            function = farm.function_named(unit.function)
        except (WrongKeyError, base.TensorwrightError) as error:
            return _raised(error)
        except ValueError as error:
            return Raised("ValueError", f"the request cannot be read: {error}")
        if function.is_isolated:
            return self._in_child(unit, should_stop)
        return _here(function, unit, should_stop)

    def _in_child(self, unit: farm.Unit, should_stop: Callable[[], bool]) -> farm.FarmOutcome:
        pool = getattr(self._of_thread, "pool", None)
        if pool is None:
            pool = self._of_thread.pool = WorkerPool(1)
            self._pools.append(pool)
        job = Job(farm.call_named, (unit.function, unit.payload))
        (outcome,) = pool.run([job], unit.limit_s, should_stop)
        return outcome


def _here(
    function: farm.NamedFunction, unit: farm.Unit, should_stop: Callable[[], bool]
) -> farm.FarmOutcome:
    try:
        result = function.load()(unit.payload, should_stop)
        return Stopped() if result is None else Done(result)
    except base.TensorwrightError as error:
        return _raised(error)
    except Exception as error:  # noqa: BLE001 - the client gets it and decides
        return Raised(
            type(error).__name__,
            str(error),
            traceback.format_exc(limit=-3),
            isinstance(error, MemoryError),
        )


def _raised(error: base.TensorwrightError) -> Raised:
    return Raised(type(error).__name__, str(error), error=error)


_CLOCK = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq")
_CPUINFO = Path("/proc/cpuinfo")
_THERMAL = Path("/sys/class/thermal")

_NAMES: list[str] = []
"""The names that this process was given; the last one holds."""

_REASONS: list[str] = []
"""Why this worker's device is set aside; the last reason holds, until the process ends."""


def name_worker(name: str) -> None:
    """Set the name of this process in the farm."""
    _NAMES.append(name)


def worker_name() -> str:
    """The name of this process in the farm; "" if it is not a worker."""
    return _NAMES[-1] if _NAMES else ""


def device_for(target: base.Target) -> farm.Device:
    """The device of this machine that runs programs for a target."""
    hardware = detect_hardware().fingerprint
    kind = hardware if isinstance(target, base.CpuTarget) else f"{hardware}+{target.key}"
    return farm.Device(kind, hardware, json.dumps(base.to_data(target)), base.available_cores())


def set_aside(payload: farm.Payload, _: Callable[[], bool]) -> farm.Payload:
    """Let this worker report that its device must not measure: {"reason": why}."""
    _REASONS.append(str(payload.data["reason"]))
    return farm.Payload()


def now(device: farm.Device) -> farm.Device:
    """A device with its present clock, temperature and load."""
    return replace(
        device,
        clock_mhz=_clock_mhz(),
        celsius=_celsius(),
        load=round(os.getloadavg()[0], 2),
        set_aside=_REASONS[-1] if _REASONS else "",
    )


def _clock_mhz() -> float:
    text = base.read_text(_CLOCK).strip()
    if text.isdigit():
        return int(text) / 1000
    lines = [line for line in base.read_text(_CPUINFO).splitlines() if line.startswith("cpu MHz")]
    return float(lines[0].partition(":")[2]) if lines else 0.0


def _celsius() -> float:
    texts = [base.read_text(path).strip() for path in _THERMAL.glob("thermal_zone*/temp")]
    return max((int(text) / 1000 for text in texts if text.lstrip("-").isdigit()), default=0.0)


@contextmanager
def own_device(target: base.Target, *, must: bool) -> Iterator[bool]:
    """Be the only worker of this user and machine that measures on a device, inside the block.

    must   whether another worker that measures on it is an error; else the block gets False
    Raises:  UsageError.
    """
    digest = hashlib.sha256(target.key.encode()).hexdigest()[:8]
    tries = iter((False, True))  # one try
    with base.hold_home_lock(f"device-{digest}.lock", lambda: next(tries), wait_s=0.0) as is_held:
        if must and not is_held:
            raise base.UsageError(
                stage="farm",
                where=f"device {target}",
                reason="another worker of this machine measures on it",
                remedy="end that worker, or give --device none: this one then only builds",
            )
        yield is_held
