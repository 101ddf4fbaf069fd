"""TVM MetaSchedule as a competitor.  Read `peer.py` first."""
