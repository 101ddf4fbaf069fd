"""Candidate rules from equal graphs, without those that one use of another explains."""
