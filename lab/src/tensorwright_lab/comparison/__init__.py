"""Competitors side by side: the same answers, and how fast, in turns. Read `networks.py`."""

from tensorwright_lab.comparison.network_rows import (
    BenchRow, Compiled, PeerTime, make_row, print_rows, read_rows, write_rows,
)
from tensorwright_lab.comparison.networks import compare_model
from tensorwright_lab.comparison.operator_table import (
    OpRow, Rival, print_op_rows, read_op_rows, summarise_rows, write_op_rows,
)
from tensorwright_lab.comparison.operators import (
    METASCHEDULE, OpPlan, OpTime, RivalPlan, choose_copies, compare_case, needed_flops,
    require_peer,
)
from tensorwright_lab.comparison.row_files import AGAIN, build_columns, print_builds, this_build
