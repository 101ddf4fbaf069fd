"""Schedules that were chosen, kept on the disk: choosing again would give the same.

The key of an entry has everything that determines a choice: workload, target, machine, the model,
the effort, and this package's own sources.  The entry has the trace and its estimates as JSON; it
appears whole or not at all, and a damaged one is ignored (see `KernelCache`).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

from tensorwright.base import UsageError, from_data, kinds_of, knobs, source_digest, to_data
from tensorwright.runtime import KernelCache, named_cache
from tensorwright.schedule import format_trace, parse_trace
from tensorwright.tuning.selection.chosen import Chosen, Estimate

LIMIT_BYTES = 32 << 20
SOURCES = (
    "machine",
    "expr",
    "schedule",
    "loop",
    "tuning/space",
    "tuning/features",
    "tuning/models",
    "tuning/time_model",
    "tuning/population",
    "tuning/selection",
)
"""The folders whose code turns a workload into a choice."""
_KINDS = kinds_of(Chosen, Estimate)


def choice_cache() -> KernelCache | None:
    """The cache in the folder of the knob `home`; None if the knob switches it off."""
    return named_cache("choices", LIMIT_BYTES) if knobs.KERNEL_CACHE.get() else None


def choice_key(*parts: str) -> str:
    """The key of a choice that comes from these."""
    return hashlib.sha256("\0".join((source_digest(*SOURCES), *parts)).encode()).hexdigest()


def pack(chosen: Chosen) -> bytes:
    """A choice as an entry: its trace as text, and the rest."""
    parts = format_trace(chosen.trace), replace(chosen, trace=())
    return json.dumps(to_data(parts)).encode()


def unpack(entry: bytes) -> Chosen | None:
    """The inverse of `pack`; None for anything else."""
    try:
        text, chosen = from_data(json.loads(entry), _KINDS)
        whole: Chosen = replace(chosen, trace=parse_trace(text))
    except (ValueError, TypeError, AttributeError, UsageError):
        return None
    return whole
