"""How the trees of the time model are grown."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TimeTreeSettings:
    """As `BoostedSettings`; `threads` changes how long it takes, and nothing else."""

    rounds: int = 300
    leaves: int = 31
    learning_rate: float = 0.1
    bins: int = 127
    least_rows: int = 20
    l2: float = 1.0
    feature_share: float = 0.5
    seed: int = 0
    threads: int = 1
