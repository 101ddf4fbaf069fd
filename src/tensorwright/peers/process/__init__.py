"""A competitor in a separate process, and several timed in turns. Read `protocol.py` first."""

from tensorwright.peers.process.accuracy import (
    NO_STEPS,
    Steps,
    describe_error,
    max_rel_error,
    max_steps,
)
from tensorwright.peers.process.kinds import KINDS, Kind, find_kind
from tensorwright.peers.process.process import PeerProcess
from tensorwright.peers.process.protocol import Arrays, FailureKind, PeerFailed, PeerInfo
from tensorwright.peers.process.rotation import (
    Competitor,
    Failure,
    Result,
    Timing,
    ratio,
    rotate,
    summarise,
)
from tensorwright.peers.process.versions import Versions, compare_versions

__all__ = [
    "KINDS",
    "NO_STEPS",
    "Arrays",
    "Competitor",
    "Failure",
    "FailureKind",
    "Kind",
    "PeerFailed",
    "PeerInfo",
    "PeerProcess",
    "Result",
    "Steps",
    "Timing",
    "Versions",
    "compare_versions",
    "describe_error",
    "find_kind",
    "max_rel_error",
    "max_steps",
    "ratio",
    "rotate",
    "summarise",
]
