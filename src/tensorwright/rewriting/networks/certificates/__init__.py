"""Certificates of the equality of two networks.  Read `certificate.py` first."""

from tensorwright.rewriting.networks.certificates.certificate import (
    NO_STEPS,
    Certificate,
    CertifiedStep,
    CertifiedTerm,
    certify,
    replay,
    replay_some,
    without_spare_steps,
)
from tensorwright.rewriting.networks.certificates.certificate_file import (
    parse_certificate,
    read_certificate,
)
from tensorwright.rewriting.networks.certificates.certificate_text import explain_certificate

__all__ = [
    "NO_STEPS",
    "Certificate",
    "CertifiedStep",
    "CertifiedTerm",
    "certify",
    "explain_certificate",
    "parse_certificate",
    "read_certificate",
    "replay",
    "replay_some",
    "without_spare_steps",
]
