"""Graphs that may be faster than a network: both searches, priced as programs.

`kinds.py` is what is asked and answered, `search.py` how it is found.
"""

from tensorwright.rewriting.candidates.kinds import (
    Candidate,
    Candidates,
    CandidateSearch,
    CostKind,
    SearchKind,
)
from tensorwright.rewriting.candidates.search import find_candidates

__all__ = [
    "Candidate",
    "CandidateSearch",
    "Candidates",
    "CostKind",
    "SearchKind",
    "find_candidates",
]
