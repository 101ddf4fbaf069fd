"""The competitors, each at its best: one module with `create() -> Peer` a kind."""

from tensorwright.peers.competitors.tuning_curve import (
    CurvePoint,
    read_curve,
    seconds_to_reach,
)

__all__ = [
    "CurvePoint",
    "read_curve",
    "seconds_to_reach",
]
