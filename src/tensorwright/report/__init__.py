"""Reports: the results of a search and the times of a network, as one HTML file.

Read `document.py` first (the contents of a report), then `measured.py` (the measurements for it)
and `page.py` (how it becomes a file). `page/` has the parts of the page.
"""

from tensorwright.report.document import (
    FORMAT, SearchedWorkload, report_values, searched_of, searched_of_session,
    searched_of_workloads,
)
from tensorwright.report.measured import Subject, load_measured, measure
from tensorwright.report.page import LiveReport, read_report, render, write_report
