"""A competitor in a separate process, and several timed in turns. Read `protocol.py` first."""

from tensorwright.peers.process.process import PeerProcess
from tensorwright.peers.process.protocol import (
    KINDS, NO_STEPS, Arrays, FailureKind, Kind, PeerFailed, PeerInfo, Steps, describe_error,
    find_kind, max_rel_error, max_steps,
)
from tensorwright.peers.process.rotation import (
    Competitor, Failure, Result, Timing, Versions, compare_versions, ratio, rotate, summarise,
)
