"""Graphs that may be faster than a network: both searches, priced as programs.

`kinds.py` has the request and the result, `search.py` the search; `coverage.py` counts where rules
can be applied.
"""

from tensorwright.rewriting.candidates.coverage import places_of_rules
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
    "places_of_rules",
]
