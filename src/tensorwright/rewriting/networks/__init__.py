"""Networks as terms: read, rewritten, chosen, written.  Read `read.py` first.

Each tensor becomes a class of an e-graph; rules make more terms equal; an extraction chooses one
term for each class, and the choice is written as a graph again.
"""

from tensorwright.rewriting.networks.certificates import (
    NO_STEPS,
    Certificate,
    certify,
    explain_certificate,
    parse_certificate,
    read_certificate,
    replay,
    replay_some,
    without_spare_steps,
)
from tensorwright.rewriting.networks.extract import (
    Corrections,
    NetworkExtraction,
    choice_seconds,
    operator_seconds,
)
from tensorwright.rewriting.networks.forms import Choice
from tensorwright.rewriting.networks.network_analysis import TensorData, TypedOperator
from tensorwright.rewriting.networks.opaque import CALL
from tensorwright.rewriting.networks.operator_costs import OperatorCosts, Roofline
from tensorwright.rewriting.networks.program_prices import (
    ANCHORS,
    PricedKernel,
    Prices,
    ProgramPrices,
    network_of,
    network_seconds,
)
from tensorwright.rewriting.networks.read import Network, read_network
from tensorwright.rewriting.networks.rules import NetworkRules, network_rules
from tensorwright.rewriting.networks.saturate import (
    NetworkSaturation,
    SaturationLimits,
    saturate_network,
    unsaturated,
)
from tensorwright.rewriting.networks.steps import choice_of, chosen_outputs, steps_between
from tensorwright.rewriting.networks.write import Outline, write_network, write_outline

__all__ = [
    "ANCHORS",
    "CALL",
    "NO_STEPS",
    "Certificate",
    "Choice",
    "Corrections",
    "Memory",
    "Network",
    "NetworkExtraction",
    "NetworkRules",
    "NetworkSaturation",
    "OperatorCosts",
    "Outline",
    "PricedKernel",
    "Prices",
    "ProgramPrices",
    "Roofline",
    "SaturationLimits",
    "TensorData",
    "TypedOperator",
    "certify",
    "choice_of",
    "choice_seconds",
    "chosen_outputs",
    "explain_certificate",
    "network_of",
    "network_rules",
    "network_seconds",
    "operator_seconds",
    "parse_certificate",
    "read_certificate",
    "read_network",
    "replay",
    "replay_some",
    "saturate_network",
    "steps_between",
    "unsaturated",
    "without_spare_steps",
    "write_network",
    "write_outline",
]
