"""Other runtimes at their best, each in a process of its own, for `bench`.

Read protocol.py first (what a competitor must do), then rotation.py (how times are compared). A new
competitor is one module with a class that keeps `Peer`, and one line in kinds.py.
"""

from tensorwright.peers.comparison.accuracy import (
    Apart,
    Steps,
    apart,
    choose_reference,
    describe_error,
    max_rel_error,
    max_steps,
    worst_of,
    wrong_text,
)
from tensorwright.peers.comparison.builds import AGAIN, build_columns, print_builds, this_build
from tensorwright.peers.comparison.network_rows import (
    BenchRow,
    Compiled,
    PeerTime,
    RatioSummary,
    make_row,
    read_rows,
    write_rows,
)
from tensorwright.peers.comparison.network_table import print_rows
from tensorwright.peers.comparison.networks import compare_model
from tensorwright.peers.comparison.operator_table import (
    OpMean,
    OpRow,
    Rival,
    print_op_rows,
    read_op_rows,
    summarise_rows,
    write_op_rows,
)
from tensorwright.peers.comparison.operators import (
    METASCHEDULE,
    OpPlan,
    OpTime,
    RivalPlan,
    choose_copies,
    compare_case,
    needed_flops,
    require_peer,
)
from tensorwright.peers.comparison.peer_prices import PeerPrices
from tensorwright.peers.comparison.rotation import (
    Competitor,
    Failure,
    Result,
    Timing,
    ratio,
    rotate,
)
from tensorwright.peers.comparison.tables import (
    print_line,
    print_table,
    shorten,
    write_objects,
)
from tensorwright.peers.comparison.versions import Versions, compare_versions
from tensorwright.peers.competitors.tuning_curve import (
    CurvePoint,
    read_curve,
    seconds_to_reach,
)
from tensorwright.peers.process.kinds import KINDS, Kind, find_kind
from tensorwright.peers.process.process import PeerProcess
from tensorwright.peers.process.protocol import Arrays, FailureKind, Peer, PeerFailed, PeerInfo

__all__ = [
    "AGAIN",
    "KINDS",
    "METASCHEDULE",
    "Apart",
    "Arrays",
    "BenchRow",
    "Competitor",
    "Compiled",
    "CurvePoint",
    "Failure",
    "FailureKind",
    "Kind",
    "OpMean",
    "OpPlan",
    "OpRow",
    "OpTime",
    "Peer",
    "PeerFailed",
    "PeerInfo",
    "PeerPrices",
    "PeerProcess",
    "PeerTime",
    "RatioSummary",
    "Result",
    "Rival",
    "RivalPlan",
    "Steps",
    "Timing",
    "Versions",
    "apart",
    "build_columns",
    "choose_copies",
    "choose_reference",
    "compare_case",
    "compare_model",
    "compare_versions",
    "describe_error",
    "find_kind",
    "make_row",
    "max_rel_error",
    "max_steps",
    "needed_flops",
    "print_builds",
    "print_line",
    "print_op_rows",
    "print_rows",
    "print_table",
    "ratio",
    "read_curve",
    "read_op_rows",
    "read_rows",
    "require_peer",
    "rotate",
    "seconds_to_reach",
    "shorten",
    "summarise_rows",
    "this_build",
    "worst_of",
    "write_objects",
    "write_op_rows",
    "write_rows",
    "wrong_text",
]
