"""Schedules that were chosen, kept on the disk: choosing again would give the same.

An entry is keyed by all that a choice comes from: workload, target, machine, the model, how much is
tried, and this package's own sources.  It holds the trace and its estimates as JSON; it appears
whole or not at all, and a damaged one is passed over (see `KernelCache`).
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path

from tensorwright.base import UsageError, knobs, source_digest
from tensorwright.runtime import KernelCache
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


def choice_cache() -> KernelCache | None:
    """The cache in the folder that the knob `home` names; None where the knob says no."""
    return _cache(knobs.HOME.get() / "choices") if knobs.KERNEL_CACHE.get() else None


@lru_cache(maxsize=16)
def _cache(folder: Path) -> KernelCache:
    return KernelCache(folder, LIMIT_BYTES)


def choice_key(*parts: str) -> str:
    """The key of a choice that comes from these."""
    return hashlib.sha256("\0".join((source_digest(*SOURCES), *parts)).encode()).hexdigest()


def pack(chosen: Chosen) -> bytes:
    """A choice as an entry."""
    estimates = {
        name: None if one is None else [one.seconds, one.upper_seconds]
        for name, one in (("estimate", chosen.estimate), ("by_rule", chosen.by_rule))
    }
    fields = {
        "trace": format_trace(chosen.trace),
        "is_by_rule": chosen.is_by_rule,
        "decisions": dict(chosen.decisions),
        **estimates,
    }
    return json.dumps(fields).encode()


def unpack(entry: bytes) -> Chosen | None:
    """What `pack` gave; None for anything else."""
    try:
        fields = json.loads(entry)
        estimate, by_rule = (
            None if fields[name] is None else Estimate(*map(float, fields[name]))
            for name in ("estimate", "by_rule")
        )
        decisions = tuple(sorted((str(k), int(v)) for k, v in fields["decisions"].items()))
        trace, is_by_rule = parse_trace(fields["trace"]), bool(fields["is_by_rule"])
        return Chosen(trace, estimate, by_rule, is_by_rule, decisions)
    except (ValueError, KeyError, TypeError, AttributeError, UsageError):
        return None
