"""Other runtimes at their best, each in a process of its own, for `bench`.

Read protocol.py first (what a competitor must do), then rotation.py (how times are compared). A new
competitor is one module with a class that keeps `Peer`, and one line in kinds.py.
"""

from tensorwright.peers.compare import max_rel_error
from tensorwright.peers.comparison import compare_model
from tensorwright.peers.foreign_load import ForeignLoad, watch_foreign_load
from tensorwright.peers.kinds import KINDS, Kind, find_kind
from tensorwright.peers.process import PeerProcess, hold_turn
from tensorwright.peers.protocol import Arrays, FailureKind, Peer, PeerFailed, PeerInfo
from tensorwright.peers.rotation import Competitor, Failure, Result, Timing, ratio, rotate
from tensorwright.peers.self_test import SelfTestRow, self_test
from tensorwright.peers.table import (
    BenchRow,
    format_table,
    make_row,
    print_rows,
    print_table,
    write_rows,
)

__all__ = [
    "KINDS",
    "Arrays",
    "BenchRow",
    "Competitor",
    "Failure",
    "FailureKind",
    "ForeignLoad",
    "Kind",
    "Peer",
    "PeerFailed",
    "PeerInfo",
    "PeerProcess",
    "Result",
    "SelfTestRow",
    "Timing",
    "compare_model",
    "find_kind",
    "format_table",
    "hold_turn",
    "make_row",
    "max_rel_error",
    "print_rows",
    "print_table",
    "ratio",
    "rotate",
    "self_test",
    "watch_foreign_load",
    "write_rows",
]
