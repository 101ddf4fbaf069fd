"""Train the time model: measure random programs, turn them into features, fit trees, judge them.

conditions.py         under what programs are measured: target, threads, constants cold or warm
measuring_machine.py  on what machine
collecting.py         programs of all sorts for each workload of a network, measured and kept
feature_files.py      their features and times as plain arrays
programs.py           what trees are fitted to, from those files
time_loss.py          what the trees make small
accuracy.py           how good a choice by predictions is
fitting.py            the time model from measured programs, and what is known of its accuracy
"""

from tensorwright_lab.pretraining.accuracy import ChoiceAccuracy, accuracy_of
from tensorwright_lab.pretraining.collecting import Collector
from tensorwright_lab.pretraining.conditions import CONDITIONS, Conditions, draw_conditions
from tensorwright_lab.pretraining.feature_files import (
    MeasuredWorkload,
    read_features,
    write_features,
)
from tensorwright_lab.pretraining.fitting import HELD_OUT, WITHOUT, Measured, Trained, train
from tensorwright_lab.pretraining.measuring_machine import MeasuringMachine
from tensorwright_lab.pretraining.settings import TimeTreeSettings

__all__ = [
    "CONDITIONS",
    "HELD_OUT",
    "WITHOUT",
    "ChoiceAccuracy",
    "Collector",
    "Conditions",
    "Measured",
    "MeasuredWorkload",
    "MeasuringMachine",
    "TimeTreeSettings",
    "Trained",
    "accuracy_of",
    "draw_conditions",
    "read_features",
    "train",
    "write_features",
]
