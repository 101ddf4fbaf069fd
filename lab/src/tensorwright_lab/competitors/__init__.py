"""The competitors, each at its best: one module with a class that keeps `Peer` a kind."""

from tensorwright_lab.competitors.tuning_curve import CurvePoint, read_curve, seconds_to_reach
