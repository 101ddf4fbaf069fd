"""Train the time model: measure random programs, turn them into features, fit trees, judge them.

conditions.py         under what programs are measured: target, threads, constants cold or warm
measuring_machine.py  on what machine
collecting.py         programs of all sorts for each workload of a network, measured and kept
varied_candidates.py  these programs: by rule, around those, believed to be fast, uniform draws
measured_candidates.py  their measurements, and those of uniform draws
feature_files.py      their features and times as plain arrays
programs.py           what trees are fitted to, from those files
time_loss.py          what the trees make small
protocol.py           how good a choice by predictions is
fitting.py            the time model from measured programs, and what is known of its accuracy
"""

from tensorwright_lab.pretraining.accuracy import accuracy_of
from tensorwright_lab.pretraining.collecting import Collector
from tensorwright_lab.pretraining.conditions import CONDITIONS, Conditions, draw_conditions
from tensorwright_lab.pretraining.feature_files import (
    MeasuredWorkload,
    read_features,
    write_features,
)
from tensorwright_lab.pretraining.fitting import HELD_OUT, WITHOUT, Measured, Trained, train
from tensorwright_lab.pretraining.measured_candidates import CollectSetting, collect, known_records
from tensorwright_lab.pretraining.measuring_machine import MeasuringMachine
from tensorwright_lab.pretraining.settings import TimeTreeSettings
from tensorwright_lab.pretraining.varied_candidates import Shares, varied_candidates

__all__ = [
    "CONDITIONS",
    "HELD_OUT",
    "WITHOUT",
    "CollectSetting",
    "Collector",
    "Conditions",
    "Measured",
    "MeasuredWorkload",
    "MeasuringMachine",
    "Shares",
    "TimeTreeSettings",
    "Trained",
    "accuracy_of",
    "collect",
    "draw_conditions",
    "known_records",
    "read_features",
    "train",
    "varied_candidates",
    "write_features",
]
