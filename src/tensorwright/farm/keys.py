"""Make the keys of a farm: an authority, a certificate for all its machines, and a shared key."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tensorwright.base import UsageError, make_folder, write_atomically
from tensorwright.farm.connecting import (
    AUTHORITY,
    CERTIFICATE,
    PRIVATE_KEY,
    SHARED_BYTES,
    SHARED_KEY,
)

_DAYS = 3650


def make_keys(folder: Path) -> tuple[Path, ...]:
    """Write new keys into a folder; only its owner may read them.  Returns the files.

    The private key of the authority is not kept, so nobody can make another certificate.  All
    machines of the farm have the same files.
    Raises:  UsageError if the folder has keys; OutputError.
    """
    names = (AUTHORITY, CERTIFICATE, PRIVATE_KEY, SHARED_KEY)
    there = [name for name in names if (folder / name).exists()]
    if there:
        raise UsageError(
            stage="farm",
            where=f"folder {folder}",
            reason=f"{there[0]} is there already",
            remedy="name a new folder; machines with the old keys do not accept the new ones",
        )
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority_name, name = _name("tensorwright farm authority"), _name("tensorwright farm")
    authority = _certificate(authority_name, authority_name, authority_key, authority_key)
    own = _certificate(name, authority_name, key, authority_key)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    contents = (_pem(authority), _pem(own), private, secrets.token_bytes(SHARED_BYTES))
    make_folder(folder).chmod(0o700)
    for file, content in zip(names, contents, strict=True):
        write_atomically(folder / file, content)
        (folder / file).chmod(0o600)
    return tuple(folder / file for file in names)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer_key: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=_DAYS))
        .add_extension(x509.BasicConstraints(ca=subject == issuer, path_length=None), critical=True)
        .sign(issuer_key, hashes.SHA256())
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
