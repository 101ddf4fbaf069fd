"""The time model: seconds of a program, on any machine, before anything was measured.

Read `rows.py` first: what is predicted from.
"""

from tensorwright.tuning.time_model.rates import rates_of, this_machine
from tensorwright.tuning.time_model.rows import (
    ROW_DIGEST,
    ROW_NAMES,
    Rows,
    log2_sum,
    program_scores,
    rows_of,
)

__all__ = [
    "ROW_DIGEST",
    "ROW_NAMES",
    "Rows",
    "log2_sum",
    "program_scores",
    "rates_of",
    "rows_of",
    "this_machine",
]
