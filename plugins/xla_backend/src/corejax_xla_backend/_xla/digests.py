"""SHA-256, imported at first use: OpenSSL takes 3 MiB of a process, and two milliseconds of its first program."""

from __future__ import annotations

from typing import Any


def sha256(data: Any = b"") -> Any:
    """Return `hashlib.sha256` of bytes."""
    import hashlib

    return hashlib.sha256(data)
