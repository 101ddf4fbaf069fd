"""Graphs that may be faster than a network: both searches, priced as programs.

`kinds.py` has the request and the result, `search.py` the search; `kinds.py` counts where rules
can be applied.
"""

from tensorwright.rewriting.candidates.kinds import (
    Candidate, CandidateSearch, Candidates, CostKind, SearchKind, places_of_rules,
)
from tensorwright.rewriting.candidates.search import find_candidates
