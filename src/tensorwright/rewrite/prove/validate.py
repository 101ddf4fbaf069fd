"""Is an axiom true?  Both sides are evaluated on symbolic tensors at many shapes, and compared.

A symbolic tensor has an unknown in each element, so that agreement at a shape is agreement for all
inputs of that shape.  Where the normal form is too weak (a quotient by a sum), exact random numbers
of a finite field decide, which is told apart in the report.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from tensorwright.base import DType
from tensorwright.expr import Array, FieldDomain, SymbolicDomain, residues
from tensorwright.rewrite.axioms import Axiom
from tensorwright.rewrite.meaning import evaluate_terms
from tensorwright.rewrite.operators import IntShape, Parameter, operator_named
from tensorwright.rewrite.prove.instances import filled
from tensorwright.rewrite.prove.polynomials import Polynomials
from tensorwright.rewrite.prove.problem import Problem, problems_of
from tensorwright.rewrite.prove.sampling import sample_shapes
from tensorwright.rewrite.terms import Param, Rule, Term, applications

__all__ = ["Fault", "Validation", "validate"]
