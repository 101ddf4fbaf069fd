"""Train the time model: measure random programs, turn them into features, fit trees, judge them.

conditions.py   under what programs are measured: machine, target, threads, constants cold or warm
collecting.py   programs of all sorts for each workload of a network, measured and kept
measured_candidates.py   these programs: by rule, around those, believed to be fast, uniform draws
programs.py     their features and times as plain arrays, and what trees are fitted to
time_loss.py    what the trees make small, and how good a choice by predictions is
fitting.py      the time model from measured programs, and what is known of its accuracy
"""

from tensorwright_lab.pretraining.collecting import Collector
from tensorwright_lab.pretraining.conditions import (
    CONDITIONS, Conditions, MeasuringMachine, draw_conditions,
)
from tensorwright_lab.pretraining.fitting import HELD_OUT, WITHOUT, Measured, Trained, train
from tensorwright_lab.pretraining.measured_candidates import (
    CollectSetting, Shares, collect, known_records, varied_candidates,
)
from tensorwright_lab.pretraining.programs import MeasuredWorkload, read_features, write_features
from tensorwright_lab.pretraining.time_loss import TimeTreeSettings, accuracy_of
