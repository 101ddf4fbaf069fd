"""Graphs that may be faster than a network: both searches, priced as programs.

`kinds.py` has the request and the result, and counts where rules can be applied; `search.py` has
the search.
"""

from tensorwright.rewriting.candidates.kinds import (
    Candidate, CandidateSearch, Candidates, CostKind, SearchKind, places_of_rules,
)
from tensorwright.rewriting.candidates.search import find_candidates
