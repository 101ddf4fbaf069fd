"""Competitors side by side: the same answers, and how fast, in turns. Read `networks.py`."""

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
from tensorwright.peers.comparison.tables import (
    print_line,
    print_table,
    shorten,
    write_objects,
)

__all__ = [
    "AGAIN",
    "METASCHEDULE",
    "Apart",
    "BenchRow",
    "Compiled",
    "OpMean",
    "OpPlan",
    "OpRow",
    "OpTime",
    "PeerPrices",
    "PeerTime",
    "RatioSummary",
    "Rival",
    "RivalPlan",
    "Steps",
    "apart",
    "build_columns",
    "choose_copies",
    "choose_reference",
    "compare_case",
    "compare_model",
    "describe_error",
    "make_row",
    "max_rel_error",
    "max_steps",
    "needed_flops",
    "print_builds",
    "print_line",
    "print_op_rows",
    "print_rows",
    "print_table",
    "read_op_rows",
    "read_rows",
    "require_peer",
    "shorten",
    "summarise_rows",
    "this_build",
    "worst_of",
    "write_objects",
    "write_op_rows",
    "write_rows",
    "wrong_text",
]
