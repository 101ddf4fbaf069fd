"""The choice of a workload's schedule: measured, or the best predicted of some hundred candidates.

Read `scheduling.py` first, which others call, then `predictor.py`; `candidates.py` has the
candidates that are compared.
"""

from tensorwright.tuning.selection.ahead import suppose, working_ahead
from tensorwright.tuning.selection.candidates import Chosen, Effort, Elite, Estimate
from tensorwright.tuning.selection.predictor import Predictor, TopQuestion, open_predictor
from tensorwright.tuning.selection.scheduling import Chooser, Scheduled, Source, schedules_text
from tensorwright.tuning.selection.size_table import SizeTable
