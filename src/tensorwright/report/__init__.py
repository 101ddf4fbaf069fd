"""Reports: the results of a search and the times of a network, as one HTML file.

Read `document.py` first (the contents of a report), then `measured.py` (the measurements for it)
and `page.py` (how it becomes a file). `page/` has the parts of the page.
"""

from tensorwright.report.document import FORMAT, report_values
from tensorwright.report.live import LiveReport
from tensorwright.report.measured import Subject, load_measured, measure
from tensorwright.report.page import read_report, render, write_report
from tensorwright.report.searches import SearchedWorkload
from tensorwright.report.sessions import (
    searched_of,
    searched_of_session,
    searched_of_workloads,
)

__all__ = [
    "FORMAT",
    "LiveReport",
    "SearchedWorkload",
    "Subject",
    "load_measured",
    "measure",
    "read_report",
    "render",
    "report_values",
    "searched_of",
    "searched_of_session",
    "searched_of_workloads",
    "write_report",
]
