"""The options --report and --live of commands that search, and how they write a report."""

from tensorwright.cli.reporting.options import opened_page, report_options
from tensorwright.cli.reporting.writing import (
    Searched,
    expression_subject,
    model_subject,
    write_after_search,
)

__all__ = [
    "Searched",
    "expression_subject",
    "model_subject",
    "opened_page",
    "report_options",
    "write_after_search",
]
