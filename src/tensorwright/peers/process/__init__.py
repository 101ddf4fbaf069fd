"""A competitor in a process of its own, and several timed in turns. Read `protocol.py` first."""

from tensorwright.peers.process.kinds import KINDS, Kind, find_kind
from tensorwright.peers.process.process import PeerProcess
from tensorwright.peers.process.protocol import Arrays, FailureKind, Peer, PeerFailed, PeerInfo
from tensorwright.peers.process.rotation import Competitor, Failure, Result, Timing, ratio, rotate
from tensorwright.peers.process.versions import Versions, compare_versions

__all__ = [
    "KINDS",
    "Arrays",
    "Competitor",
    "Failure",
    "FailureKind",
    "Kind",
    "Peer",
    "PeerFailed",
    "PeerInfo",
    "PeerProcess",
    "Result",
    "Timing",
    "Versions",
    "compare_versions",
    "find_kind",
    "ratio",
    "rotate",
]
