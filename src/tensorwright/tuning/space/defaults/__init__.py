"""The sketches by rule, whose first is the schedule of an untuned program."""
