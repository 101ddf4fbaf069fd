"""Networks as terms: read, rewritten, chosen, written.  Read `read.py` first.

Each tensor becomes a class of an e-graph; rules make more terms equal; an extraction chooses one
term for each class, and the choice is written as a graph again.
"""

from tensorwright.rewriting.networks.certificate import (
    NO_STEPS, Certificate, certify, replay, replay_some, without_spare_steps,
)
from tensorwright.rewriting.networks.certificate_file import (
    explain_certificate, parse_certificate, read_certificate,
)
from tensorwright.rewriting.networks.extract import (
    ANCHORS, Corrections, NetworkExtraction, OperatorCosts, PricedKernel, Prices, ProgramPrices,
    Roofline, choice_seconds, network_of, network_seconds, operator_seconds,
)
from tensorwright.rewriting.networks.network_analysis import CALL, TensorData, TypedOperator
from tensorwright.rewriting.networks.read import Choice, Network, read_network
from tensorwright.rewriting.networks.saturate import (
    NetworkRules, NetworkSaturation, SaturationLimits, choice_of, chosen_outputs, network_rules,
    saturate_network, steps_between, unsaturated,
)
from tensorwright.rewriting.networks.write import Outline, write_network, write_outline
