"""Requests and answers as bytes: a digest with the shared key, a head in JSON, then the blobs.

    32 bytes   HMAC-SHA256 of what follows, under the key that both sides have
     4 bytes   length of the head, little-endian
               the head: JSON in UTF-8; "blobs" has the lengths of the blobs
               the blobs, one after the other

The receiver checks the digest before it reads anything else.  Without a shared key the digest is
made with an empty key and detects damage only.  An answer repeats the digest of its request, so
that it cannot be taken for the answer to another one.
"""

from __future__ import annotations

import functools
import hmac
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tensorwright.base import (
    ERROR_KINDS,
    MachineError,
    TensorwrightError,
    UsageError,
    source_digest,
)
from tensorwright.farm.unit import FarmOutcome, Lost, Payload, Unit
from tensorwright.processes import Died, Done, Raised, Stopped, TimedOut
from tensorwright.version import __version__

_LENGTH = struct.Struct("<I")
_DIGEST_BYTES = 32
_ERRORS = {kind.__name__: kind for kind in ERROR_KINDS}


class WrongKeyError(MachineError):
    """A message whose sender does not have the shared key of this side."""


@functools.cache
def farm_version() -> str:
    """The version that both sides must have: the package's, and a digest of its sources."""
    return f"{__version__}+{source_digest('.')[:12]}"


@dataclass(frozen=True, slots=True)
class Request:
    """A unit as a worker receives it.  `version` is that of the client."""

    unit: Unit
    version: str


def pack_request(unit: Unit, key: bytes) -> bytes:
    """A unit as bytes."""
    head = {
        "version": farm_version(),
        "function": unit.function,
        "data": unit.payload.data,
        "limit_s": unit.limit_s,
        "device": unit.device,
        "workers": unit.workers,
        "turn": unit.turn,
    }
    return _pack(head, unit.payload.blobs, key)


def unpack_request(message: bytes, key: bytes) -> Request:
    """The inverse of `pack_request`.

    Raises:  WrongKeyError, ValueError for what is not a request.
    """
    head, blobs = _unpack(message, key)
    try:
        unit = Unit(
            head["function"],
            Payload(head["data"], blobs),
            head["limit_s"],
            head["device"],
            tuple(head["workers"]),
            head["turn"],
        )
        return Request(unit, head["version"])
    except KeyError as error:
        raise ValueError(f"a request without {error}") from error


def pack_answer(outcome: FarmOutcome, request: bytes, key: bytes) -> bytes:
    """How a unit ended, as bytes."""
    head: dict[str, Any] = {"kind": type(outcome).__name__, "to": digest_of(request).hex()}
    blobs: tuple[bytes, ...] = ()
    match outcome:
        case Done(Payload(data, blobs)):
            head["data"] = data
        case Done(value):
            raise ValueError(
                f"a function of a farm returns a payload, not a {type(value).__name__}"
            )
        case Raised(kind, text, trace, is_memory, error):
            head |= {"error": kind, "text": text, "trace": trace, "is_memory": is_memory}
            if error is not None:
                head["fields"] = dict(error.fields)
        case Died(cause, was_killed):
            head |= {"cause": cause, "was_killed": was_killed}
        case TimedOut(limit_s):
            head["limit_s"] = limit_s
        case Stopped():
            pass
        case Lost(cause):
            head["cause"] = cause
    return _pack(head, blobs, key)


def unpack_answer(message: bytes, request: bytes, key: bytes) -> FarmOutcome:
    """The inverse of `pack_answer`.

    Raises:  WrongKeyError, ValueError for what is not an answer to this request.
    """
    head, blobs = _unpack(message, key)
    if head.get("to") != digest_of(request).hex():
        raise ValueError("an answer to another request")
    try:
        return _outcome(head, blobs)
    except KeyError as error:
        raise ValueError(f"an answer without {error}") from error


def _outcome(head: Mapping[str, Any], blobs: tuple[bytes, ...]) -> FarmOutcome:
    match head["kind"]:
        case "Done":
            return Done(Payload(head["data"], blobs))
        case "Raised":
            error = _error(head["error"], head["fields"]) if "fields" in head else None
            return Raised(head["error"], head["text"], head["trace"], head["is_memory"], error)
        case "Died":
            return Died(head["cause"], head["was_killed"])
        case "TimedOut":
            return TimedOut(head["limit_s"])
        case "Stopped":
            return Stopped()
        case "Lost":
            return Lost(head["cause"])
        case kind:
            raise ValueError(f"an outcome {kind!r}")


def _error(kind: str, fields: Mapping[str, str]) -> TensorwrightError | None:
    """An error of `base/errors.py` by its name and fields; None if there is none of the name."""
    return _ERRORS[kind](**fields) if kind in _ERRORS else None


def other_version(theirs: str) -> UsageError:
    """The error that two sides have different versions."""
    return UsageError(
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
