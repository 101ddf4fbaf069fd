"""Schedules that were chosen, kept on the disk: choosing again would give the same.

An entry is keyed by all that a choice comes from: workload, target, machine, the model, how much is
tried, and this package's own sources.  It holds the trace and its estimates as JSON; it appears
whole or not at all, and a damaged one is passed over (see `KernelCache`).
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
    """The cache in the folder that the knob `home` names; None where the knob says no."""
    return named_cache("choices", LIMIT_BYTES) if knobs.KERNEL_CACHE.get() else None


def choice_key(*parts: str) -> str:
    """The key of a choice that comes from these."""
    return hashlib.sha256("\0".join((source_digest(*SOURCES), *parts)).encode()).hexdigest()


def pack(chosen: Chosen) -> bytes:
    """A choice as an entry: its trace as text, and the rest."""
    parts = format_trace(chosen.trace), replace(chosen, trace=())
    return json.dumps(to_data(parts)).encode()


def unpack(entry: bytes) -> Chosen | None:
    """What `pack` gave; None for anything else."""
    try:
        text, chosen = from_data(json.loads(entry), _KINDS)
        whole: Chosen = replace(chosen, trace=parse_trace(text))
    except (ValueError, TypeError, AttributeError, UsageError):
        return None
    return whole
